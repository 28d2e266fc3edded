"""Recommendations from physics alone.

The tests cover the choices made, the choices never changed, and their explanations.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from knowledge.core.domain.catalogue import UnknownModel
from knowledge.core.domain.option_json import option_json, read_option
from knowledge.core.domain.types import Goal, GpuPool, Inventory, Source, Unsupported, Workload
from knowledge.core.recommend import duration
from knowledge.recommendations.recommender import RecommendationFailed, Recommender
from tests.knowledge.conftest import A100, CATALOGUE, CLUSTER, CPU, DATA, GIB, LAPTOP
from trainer.recipes import DEFAULT_RECIPE, Binds, Param

pytestmark = pytest.mark.django_db
LLAMA = "meta-llama/Llama-3.1-8B"
RECIPE = DEFAULT_RECIPE
TINY_LLAMA = CATALOGUE.model("builtin/tiny-llama")


def ask(model: str = LLAMA, inventory: Inventory = CLUSTER, goal: Goal = Goal.BALANCED, **fixed: Any):  # type: ignore[no-untyped-def]
    return Recommender.of(inventory).recommend(
        model=model, fixed=RECIPE.clean(fixed), workload=DATA, goal=goal
    )


def test_every_parameter_has_a_value_and_a_reason_of_its_own() -> None:
    found = ask()
    assert set(found.chosen) == set(RECIPE.params)
    assert all(choice.reason.endswith(".") for choice in found.chosen.values())
    needed = set(RECIPE.binding(Binds.SUBMIT)) - {"max_steps"}
    assert set(found.bound) == needed
    assert RECIPE.clean(found.bound) == found.bound


def test_a_parameter_that_nothing_decides_is_what_its_user_says_or_its_default(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    dropout = Param(kind=float, binds=Binds.SUBMIT, default=0.0, low=0.0, high=0.5, help="A new one.")
    monkeypatch.setitem(RECIPE.params, "dropout", dropout)
    assert ask().bound["dropout"] == 0.0
    assert ask().chosen["dropout"].by == "default"
    assert ask(dropout=0.1).bound["dropout"] == 0.1
    assert ask(dropout=0.1).chosen["dropout"].by == "user"


def test_a_cpu_job_trains_in_float32_and_says_that_physics_speaks() -> None:
    found = ask("builtin/tiny-llama", LAPTOP)
    best = found.best
    assert best is not None
    assert best.key == "cpu:1x1"
    assert found.bound["precision"] == "float32"
    assert best.source is Source.PRIOR
    assert best.duration_s.low < best.duration_s.value < best.duration_s.high
    assert any("physics" in note for note in found.notes)


def test_options_are_one_a_bundle_and_keep_the_effective_batch() -> None:
    found = ask()
    assert len({option.key for option in found.options}) == len(found.options)
    batch = found.bound["effective_batch_size"]
    assert all(option.config.effective_batch_size == batch for option in found.options)


FIXED = st.fixed_dictionaries(
    {},
    optional={
        "tuning": st.sampled_from(["full", "lora"]),
        "tokens_per_sample": st.sampled_from([64, 512, 2048]),
        "per_device_batch_size": st.sampled_from([1, 2, 3, 8]),
        "gradient_accumulation_steps": st.sampled_from([1, 3, 4]),
        "number_gpus": st.sampled_from([1, 2, 3, 8]),
        "gradient_checkpointing": st.booleans(),
        "learning_rate": st.floats(1e-6, 1e-2),
        "seed": st.integers(0, 99),
        "epochs": st.floats(0.5, 5),
    },
)


@given(fixed=FIXED, goal=st.sampled_from(Goal))
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_the_user_fixed_never_changes(fixed: dict[str, Any], goal: Goal) -> None:
    found = ask(goal=goal, **fixed)
    for name, value in fixed.items():
        assert found.chosen[name].value == value
        assert found.chosen[name].by == "user"
        if RECIPE.params[name].binds is Binds.SUBMIT:
            assert found.bound[name] == value
        else:
            assert all(getattr(option.config, name) == value for option in found.options)


def test_the_same_question_has_the_same_answer() -> None:
    assert ask() == ask()


def test_a_partly_fixed_batch_binds_the_nearest_whole_one() -> None:
    found = ask(per_device_batch_size=3)
    assert found.bound["effective_batch_size"] == 9
    assert all(option.config.per_device_batch_size == 3 for option in found.options)


def test_cheapest_costs_no_more_and_fastest_takes_no_longer() -> None:
    cheapest, fastest = ask(goal=Goal.CHEAPEST).best, ask(goal=Goal.FASTEST).best
    assert cheapest.cost.value <= fastest.cost.value
    assert fastest.duration_s.value <= cheapest.duration_s.value


def test_qlora_is_chosen_where_lora_fits_no_gpu() -> None:
    small = Inventory(pools=(GpuPool(gpu_model="L4", node_sizes=(1,), memory_bytes=15 * GIB),))
    found = ask(inventory=small)
    assert found.bound["tuning"] == "qlora"
    assert found.bound["quantization"] == "bnb-4bit"
    assert found.best.config.gpu_model == "L4"


def test_a_tuning_that_no_node_can_train_is_never_proposed_and_the_remedy_is_named() -> None:
    why = "gpu-1: bitsandbytes is missing, install requirements/gpu.lock on it"
    small = GpuPool(
        gpu_model="L4", node_sizes=(1,), memory_bytes=15 * GIB, cannot_train={"qlora": Unsupported(why=why)}
    )
    found = ask(inventory=Inventory(pools=(small,)))
    assert (found.bound["tuning"], found.options) == ("lora", ())
    assert f"would help, too, but: No registered node can train qlora ({why})." in found.notes[0]
    able = ask(inventory=Inventory(pools=(small, replace(small, price_per_gpu_hour=1.0, cannot_train={}))))
    assert able.bound["tuning"] == "qlora"
    assert able.best.cost.value > 0, "the node that can, not the one that costs nothing"
    fixed = ask(inventory=Inventory(pools=(small, CPU)), tuning="qlora")
    assert fixed.options == ()
    assert fixed.notes[0].startswith(
        f"No registered node can train qlora ({why}; CPU slots: 4-bit training needs a GPU)."
    )


def test_nodes_that_lack_one_tuning_share_jobs_of_the_others() -> None:
    lack = Unsupported(why="gpu-1: bitsandbytes is missing", others=(4,))
    both = Inventory(pools=(replace(A100, cannot_train={"qlora": lack}),), max_nodes=2)
    lora, qlora = (ask(inventory=both, tuning=way, effective_batch_size=16) for way in ("lora", "qlora"))
    assert "A100-SXM4-80GB:2x8" in {option.key for option in lora.options}
    assert {option.key for option in qlora.options} == {f"A100-SXM4-80GB:1x{gpus}" for gpus in (1, 2, 4)}


def test_gpus_without_bfloat16_train_in_float16() -> None:
    old = Inventory(pools=(GpuPool(gpu_model="T4", node_sizes=(1,), memory_bytes=15 * GIB),))
    assert ask("builtin/tiny-llama", old).bound["precision"] == "float16"


def test_full_fine_tuning_is_given_room_for_weights_and_moments_in_float32() -> None:
    best = ask(tuning="full", precision="bfloat16").best
    assert best is not None
    assert best.peak_memory_bytes.value * best.config.number_gpus > 16 * 8.03e9


def test_after_running_out_of_memory_only_smaller_options_are_left() -> None:
    found = ask()
    limit = found.best.peak_memory_bytes.value
    smaller = Recommender.of(CLUSTER).options(
        model=LLAMA,
        bound=found.bound,
        fixed={},
        workload=DATA,
        less_memory_than=limit,
    )
    assert smaller
    assert all(option.peak_memory_bytes.value < limit for option in smaller)


def test_what_fits_nowhere_has_no_option_and_says_why() -> None:
    found = ask("llama3.1-70b", LAPTOP)
    assert found.options == ()
    assert "GiB" in found.notes[0]


def test_a_job_is_not_spread_over_more_nodes_than_the_cluster_allows() -> None:
    spread = replace(CLUSTER, max_nodes=2)
    assert {option.nodes for option in ask(effective_batch_size=16).options} == {1}
    assert {option.nodes for option in ask(inventory=spread, effective_batch_size=16).options} == {1, 2}


def test_too_many_fixed_nodes_or_gpus_have_no_option_and_say_why() -> None:
    nodes, gpus = ask(number_nodes=2), ask(number_gpus=16, effective_batch_size=16)
    assert nodes.options == gpus.options == ()
    assert "at most a single node" in nodes.notes[0]
    assert "16 GPUs" in gpus.notes[0]


def test_a_fixed_number_of_gpus_need_not_be_a_power_of_two() -> None:
    found = ask(number_gpus=3, effective_batch_size=6)
    assert {option.gpus for option in found.options} == {3}


def test_without_a_node_the_job_waits_and_says_so() -> None:
    found = ask(inventory=Inventory())
    assert found.options == ()
    assert "No node is registered" in found.notes[0]


def test_an_unknown_hub_model_gets_stated_defaults() -> None:
    found = ask("some-one/new-model")
    assert found.best.source is Source.DEFAULT
    assert found.best.tokens_per_second.value == 0
    assert "not in the catalogue" in found.notes[0]


@pytest.mark.parametrize("name", ["acme/thing-12b", "random/acme/thing-12b", "/srv/models/thing-12b"])
def test_a_model_of_which_only_the_size_is_known_is_predicted_with_wider_intervals(name: str) -> None:
    found = ask(name)
    same = ask(found.notes[0].partition("all figures are of ")[2].partition(",")[0])
    assert found.best.source is not Source.DEFAULT
    assert "is not in the catalogue: all figures are of" in found.notes[0]
    assert found.best.peak_memory_bytes.value == pytest.approx(same.best.peak_memory_bytes.value, rel=0.05)
    assert found.best.peak_memory_bytes.value > 20 * GIB
    for mine, theirs in (
        (found.best.peak_memory_bytes, same.best.peak_memory_bytes),
        (found.best.tokens_per_second, same.best.tokens_per_second),
        (found.best.duration_s, same.best.duration_s),
    ):
        assert mine.low / mine.value < theirs.low / theirs.value
        assert mine.high / mine.value > theirs.high / theirs.value
    assert found.best.p_valid <= same.best.p_valid
    assert found.best.outside


def test_a_peak_of_what_probably_runs_is_within_its_gpu() -> None:
    asked = 0
    for model in (LLAMA, "Qwen/Qwen2.5-32B", "google/gemma-2-9b"):
        for tuning in ("lora", "full"):
            for tokens in (2048, 8192):
                for option in ask(model, tuning=tuning, tokens_per_sample=tokens).options:
                    asked += 1
                    peak, capacity = option.peak_memory_bytes, option.gpu_memory_bytes
                    assert option.p_valid < 0.5 or max(peak.value, peak.high) <= capacity
    assert asked > 20


def test_reasons_say_what_is_true_of_these_nodes() -> None:
    alone = Inventory(pools=(GpuPool(gpu_model="A100-SXM4-80GB", node_sizes=(1,), memory_bytes=80 * GIB),))
    chosen = ask(inventory=alone).chosen
    assert chosen["number_gpus"].reason == "The nodes here can give one job no other number of GPUs."
    assert chosen["gpu_model"].reason == "The nodes here offer A100-SXM4-80GB alone."
    assert "experts" not in chosen["target_modules"].reason
    mixture = ask("mistralai/Mixtral-8x7B-v0.1").chosen
    assert "experts themselves get none" in mixture["target_modules"].reason


def test_a_name_without_a_size_borrows_nothing() -> None:
    assert ask("acme/thing").best.source is Source.DEFAULT


def test_a_mistyped_name_is_refused_with_suggestions() -> None:
    with pytest.raises(UnknownModel, match="Meta-Llama-3-8B"):
        ask("lama3-8b")


def test_an_unknown_gpu_is_offered_only_where_no_other_can_run_the_job() -> None:
    unknown = GpuPool(gpu_model="Exotic-9000", node_sizes=(2,), memory_bytes=64 * GIB)
    mixed = Inventory(pools=(A100, unknown))
    assert {option.gpu_model for option in ask(inventory=mixed).options} == {"A100-SXM4-80GB"}
    alone = ask(inventory=Inventory(pools=(unknown,)))
    assert {option.source for option in alone.options} == {Source.DEFAULT}
    assert alone.notes == ("The GPU Exotic-9000 is not in the catalogue: time, memory and cost are unknown.",)
    asked_for = ask(inventory=mixed, gpu_model="Exotic-9000")
    assert {option.gpu_model for option in asked_for.options} == {"Exotic-9000"}


def test_a_prediction_with_exact_tokens_scales_the_training_time_alone() -> None:
    promised = ask("builtin/tiny-llama", LAPTOP).best
    doubled = duration.repredict(
        promised,
        model=TINY_LLAMA,
        data=type(DATA)(rows=400, lengths=((50, 400),)),
        startup_s=promised.startup_s,
    )
    assert doubled.padded_tokens == 50
    assert promised.startup_s < doubled.duration_s.value < promised.duration_s.value


def test_a_prediction_is_surer_once_the_start_up_is_known() -> None:
    promised = ask("builtin/tiny-llama", LAPTOP).best
    known = duration.repredict(promised, model=TINY_LLAMA, data=DATA, startup_s=promised.startup_s)
    before, after = promised.duration_s, known.duration_s
    assert after.value == pytest.approx(before.value)
    assert before.low < after.low < after.high < before.high


def test_default_recommendation_predicts_nothing_and_survives_storage() -> None:
    found = Recommender.of(CLUSTER).default_recommendation(model=LLAMA, fixed={}, workload=DATA)
    assert {option.source for option in found.options} == {Source.DEFAULT}
    assert [read_option(option_json(option)) for option in found.options] == list(found.options)


def test_recommendation_is_quick() -> None:
    ask()
    began = time.process_time()
    ask()
    assert time.process_time() - began < 0.3


def test_the_unforeseen_becomes_recommendation_failed() -> None:
    with pytest.raises(RecommendationFailed):
        Recommender.of(Inventory(pools=(CPU,))).options(model=LLAMA, bound={}, fixed={}, workload=DATA)


def test_what_cutting_long_rows_costs_is_told() -> None:
    few_long = Workload(rows=1000, lengths=((10, 990), (8000, 10)))
    found = Recommender.of(CLUSTER).recommend(model=LLAMA, fixed={}, workload=few_long)
    assert found.bound["tokens_per_sample"] == 64
    reason = (
        "99.0% of the rows have at most 64 tokens; longer rows are truncated,"
        " which keeps 11.7% of all tokens."
    )
    assert found.chosen["tokens_per_sample"].reason == reason


def test_what_a_chosen_length_cuts_is_told() -> None:
    lengths = ((10, 990), (100, 4), (8000, 6))
    recommender, few_long = Recommender.of(CLUSTER), Workload(rows=1000, lengths=lengths)
    fixed = {"tokens_per_sample": 100}
    note = (
        "About 6 of 1,000 rows have more than the 100 tokens that you chose and are cut there, which loses"
        " 81.3% of all tokens; a larger tokens_per_sample keeps them."
    )
    assert note in recommender.recommend(model=LLAMA, fixed=fixed, workload=few_long).notes
    assert note in recommender.default_recommendation(model=LLAMA, fixed=fixed, workload=few_long).notes
    for longer in ({"tokens_per_sample": 8000}, {}):
        notes = recommender.recommend(model=LLAMA, fixed=longer, workload=few_long).notes
        assert not any("are cut there" in told for told in notes)


def test_a_larger_batch_whose_padding_costs_more_than_it_saves_is_not_taken() -> None:
    """A few long rows among short ones: a batch is as long as its longest row."""
    mixed = replace(DATA, rows=400, lengths=((40, 300), (800, 100)))

    def best(**fixed: Any) -> Any:
        recommender = Recommender.of(LAPTOP)
        found = recommender.recommend(
            model="builtin/tiny-llama",
            fixed=RECIPE.clean({"effective_batch_size": 8, **fixed}),
            workload=mixed,
        )
        return found.best

    chosen, each = best(), [best(per_device_batch_size=size) for size in (1, 2, 4, 8)]
    fastest = min(option.duration_s.value for option in each)
    most_tokens = max(each, key=lambda option: option.tokens_per_second.value)
    assert chosen.duration_s.value <= fastest / 0.97
    assert most_tokens.duration_s.value > chosen.duration_s.value, "tokens of padding count as processed"
