"""Each ended attempt leaves one execution, and the next prediction knows it."""

from __future__ import annotations

from dataclasses import replace
from uuid import uuid4

import pytest

from knowledge import selectors
from knowledge.core.domain.option_json import read_option
from knowledge.core.domain.types import Source
from knowledge.models import Execution
from knowledge.recommendations.recommender import Recommender
from knowledge.services import record_execution, unlearn
from tests.knowledge.conftest import DATA, GIB, LAPTOP, NOW, TINY, promised

pytestmark = pytest.mark.django_db


def record(**values: object) -> Execution:
    known: dict[str, object] = {"attempt_id": uuid4(), "config": TINY, "status": "ok", "now": NOW, **values}
    return record_execution(**known)  # type: ignore[arg-type]


def test_an_attempt_is_recorded_once() -> None:
    attempt = uuid4()
    first = record(attempt_id=attempt, tokens_per_second=900.0)
    again = record(attempt_id=attempt, tokens_per_second=123.0, status="failed")
    assert first.pk == again.pk
    assert again.tokens_per_second == 900.0
    assert Execution.objects.count() == 1


def test_a_row_keeps_configuration_promise_and_outcome() -> None:
    promise = replace(promised(800.0), padded_tokens=400.0)
    row = record(
        tokens_per_second=900.0,
        runtime_s=60.0,
        startup_s=5.0,
        peak_memory_bytes=GIB,
        memory_capacity_bytes=4 * GIB,
        promise=promise,
        predictor_version=3,
    )
    row.refresh_from_db()
    assert row.config == TINY
    assert row.effective_batch_size == 8
    assert row.peak_memory_fraction == 0.25
    assert row.row.gpu_memory_bytes == 4 * GIB
    assert row.padded_tokens == 400.0
    assert row.predicted is not None
    assert read_option(row.predicted) == promise


def test_a_run_that_did_not_end_by_itself_has_no_duration() -> None:
    assert record(status="oom", runtime_s=60.0).runtime_s is None


@pytest.mark.parametrize("wild", [0, -1, float("nan"), float("inf")])
def test_figures_that_cannot_be_are_unknown(wild: float) -> None:
    figures = ("tokens_per_second", "runtime_s", "startup_s", "peak_memory_bytes")
    row = record(**dict.fromkeys(figures, wild), memory_capacity_bytes=4 * GIB)
    assert [getattr(row, name) for name in (*figures, "peak_memory_fraction")] == [None] * 5


@pytest.mark.parametrize("gpu_model", ["cpu", "A100-SXM4-80GB"])
def test_a_rate_above_the_hardware_s_peak_is_kept_but_not_learnt_from(gpu_model: str) -> None:
    row = record(config=replace(TINY, gpu_model=gpu_model), tokens_per_second=1e12)
    assert row.tokens_per_second == 1e12
    assert not row.learn
    assert "above the hardware's peak" in row.flag_reason
    assert not selectors.own_runs(up_to=row.pk)


def test_an_unknown_status_is_refused() -> None:
    with pytest.raises(ValueError, match="use one of"):
        record(status="great")


def test_aliases_are_stored_under_the_catalogue_s_name() -> None:
    row = record(config=replace(TINY, model_name="llama3.1-8b", gpu_model="NVIDIA A100-SXM4-80GB"))
    assert (row.model_name, row.gpu_model) == ("meta-llama/Llama-3.1-8B", "A100-SXM4-80GB")


def test_start_up_is_learnt_from_own_runs() -> None:
    for seconds in (4.0, 6.0, 50.0):
        record(startup_s=seconds)
    option = Recommender.of(LAPTOP).recommend(model=TINY.model_name, fixed={}, workload=DATA).best
    assert option is not None
    assert option.startup_s == 6.0


def _rate() -> float:
    option = Recommender.of(LAPTOP).recommend(model=TINY.model_name, fixed={}, workload=DATA).best
    assert option is not None
    return option.tokens_per_second.value


def test_one_own_run_moves_the_next_prediction_towards_it() -> None:
    before = _rate()
    option = Recommender.of(LAPTOP).recommend(model=TINY.model_name, fixed={}, workload=DATA).best
    assert option is not None
    record(config=option.config, tokens_per_second=3 * before, promise=option)
    assert 2 * before < _rate() < 3 * before


def test_a_run_that_is_unlearnt_and_learnt_again_counts_at_once() -> None:
    before = _rate()
    option = Recommender.of(LAPTOP).recommend(model=TINY.model_name, fixed={}, workload=DATA).best
    run = record(config=option.config if option else TINY, tokens_per_second=3 * before, promise=option)
    corrected = _rate()
    unlearn(executions=[run.pk], reason="measured beside another training")
    assert _rate() == pytest.approx(before)
    Execution.objects.update(learn=True)
    assert _rate() == pytest.approx(corrected) != before


def test_two_repeats_are_answered_exactly() -> None:
    option = Recommender.of(LAPTOP).recommend(model=TINY.model_name, fixed={}, workload=DATA).best
    assert option is not None
    for rate in (900.0, 1000.0):
        record(config=option.config, tokens_per_second=rate, promise=option)
    again = Recommender.of(LAPTOP).options(
        model=TINY.model_name,
        bound={**option_bound(), "effective_batch_size": option.config.effective_batch_size},
        fixed={
            "per_device_batch_size": option.config.per_device_batch_size,
            "gradient_checkpointing": option.config.gradient_checkpointing,
        },
        workload=DATA,
    )[0]
    assert again.config == option.config
    assert again.source is Source.EXACT
    assert again.tokens_per_second.value == 950.0


def option_bound() -> dict[str, object]:
    return Recommender.of(LAPTOP).recommend(model=TINY.model_name, fixed={}, workload=DATA).bound


def test_what_ran_out_of_memory_is_not_offered_again() -> None:
    option = Recommender.of(LAPTOP).recommend(model=TINY.model_name, fixed={}, workload=DATA).best
    assert option is not None
    record(config=option.config, status="oom", promise=option)
    after = Recommender.of(LAPTOP).recommend(model=TINY.model_name, fixed={}, workload=DATA).best
    assert after is not None
    assert after.config != option.config


def test_what_ran_once_and_ran_out_of_memory_more_often_is_not_trusted() -> None:
    option = Recommender.of(LAPTOP).recommend(model=TINY.model_name, fixed={}, workload=DATA).best
    assert option is not None
    for status in ("ok", "oom", "oom"):
        record(config=option.config, status=status, promise=option)
    after = Recommender.of(LAPTOP).recommend(model=TINY.model_name, fixed={}, workload=DATA).best
    assert after is not None
    assert after.config != option.config


def test_the_token_changes_with_the_predictor_alone() -> None:
    before = Recommender.of(LAPTOP).version
    record(tokens_per_second=900.0)
    assert Recommender.of(LAPTOP).version == before == "prior"
    assert selectors.state().last_own > 0
