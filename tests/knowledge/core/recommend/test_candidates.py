"""Configurations as columns agree with configurations one by one.

A shortlist keeps the best of them.
"""

from __future__ import annotations

from dataclasses import fields, replace
from itertools import product

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from knowledge.core.analytic import cost_model
from knowledge.core.analytic.config_table import columns
from knowledge.core.domain import config_space, workload
from knowledge.core.domain.types import Config, GpuPool
from knowledge.core.predict.base import MIN_P_VALID, PriorPredictor
from knowledge.core.recommend import search
from knowledge.core.recommend.candidates import Candidates, best_of_each
from tests.knowledge.conftest import A100, CATALOGUE, CPU, DATA, L40S

LENGTHS, BATCHES, STEPS = (512, 1024, 2048), (0, 1, 2, 4, 8, 16, 32, 64), (1, 2, 4, 8)


def kind(pool: GpuPool, gpus: int, tuning: str = "lora", sharding: str = "ddp", **more: object) -> Config:
    return Config(
        model_name="llama3.1-8b",
        tuning=tuning,
        gpu_model=pool.gpu_model,
        number_gpus=gpus,
        tokens_per_sample=1,
        per_device_batch_size=1,
        precision="bfloat16",
        quantization="none",
        sharding=sharding,
        **more,  # type: ignore[arg-type]
    )


def every() -> Candidates:
    sizes = list(product(LENGTHS, BATCHES, STEPS))
    found = (
        (kind(pool, gpus, tuning, sharding, gradient_checkpointing=checkpointing), pool, sizes)
        for pool, gpus, tuning, sharding, checkpointing in product(
            (A100, L40S, CPU), (1, 2, 4, 8), ("full", "lora", "qlora"), ("none", "ddp", "fsdp"), (True, False)
        )
    )
    return Candidates.of(found, CATALOGUE)


def test_what_is_enumerated_is_what_no_launch_rule_refuses() -> None:
    found = {config_space.config_hash(config) for config in every().configs()}
    kinds = product((A100, L40S, CPU), (1, 2, 4, 8), ("full", "lora", "qlora"), ("none", "ddp", "fsdp"))
    for (pool, gpus, tuning, sharding), batch in product(kinds, (0, 4)):
        config = kind(pool, gpus, tuning, sharding, gradient_checkpointing=True)
        sized = Candidates.of([(config, pool, [(512, batch, 2)])], CATALOGUE)
        expected = config_space.refused(config, CATALOGUE) is None and batch > 0
        assert len(sized) == expected
        assert not expected or config_space.config_hash(sized.config(0)) in found


def test_columns_are_those_of_the_configurations() -> None:
    found = every()
    some = found.take(np.arange(0, len(found), 37))
    padded = [
        workload.padded_length(DATA, x.tokens_per_sample, x.per_device_batch_size, x.effective_batch_size)
        for x in some.configs()
    ]
    here, expected = some.columns(CATALOGUE, DATA), columns(some.configs(), CATALOGUE, padded)
    expected = replace(expected, memory=np.array([some.pool(row).memory_bytes for row in range(len(some))]))
    for field in fields(here):
        assert np.array_equal([*getattr(here, field.name)], [*getattr(expected, field.name)]), field.name


def test_few_candidates_are_all_scored() -> None:
    found = every().take(np.arange(search.SHORTLIST))
    short, _ = search.shortlisted(found, found.columns(CATALOGUE), PriorPredictor(catalogue=CATALOGUE))
    assert short is found


def test_of_many_candidates_the_shortlist_keeps_the_best_of_every_bundle() -> None:
    found, predictor = every(), PriorPredictor(catalogue=CATALOGUE)
    c = found.columns(CATALOGUE)
    assert len(found) > search.SHORTLIST
    short, of_short = search.shortlisted(found, c, predictor)
    assert len(short) <= search.SHORTLIST
    for some, columns_of in ((found, c), (short, of_short)):
        scores = predictor.score(some.configs(), columns_of)
        chosen = search.per_bundle(some, columns_of, scores, scores.p_valid >= MIN_P_VALID)
        rates = {
            some.config(row).gpu_model + str(some.config(row).number_gpus): scores.rate[row] for row in chosen
        }
        if some is found:
            best = rates
    assert set(rates) == set(best)
    assert all(rates[bundle] >= search.SAME_RATE * best[bundle] for bundle in best)


def test_the_shortlist_is_the_same_each_time() -> None:
    found = every()
    one, other = (
        search.shortlisted(found, found.columns(CATALOGUE), PriorPredictor(catalogue=CATALOGUE))[0]
        for _ in range(2)
    )
    assert one.configs() == other.configs()


def test_where_nothing_fits_the_nearest_are_kept() -> None:
    tight = Candidates.of(
        [(kind(L40S, 1, "full", "none"), L40S, [(8192, 512, step) for step in range(1, 4000)])], CATALOGUE
    )
    short, c = search.shortlisted(tight, tight.columns(CATALOGUE), PriorPredictor(catalogue=CATALOGUE))
    assert 0 < len(short) <= search.SHORTLIST
    assert (cost_model.fits(c) < 1).all()


@given(
    rows=st.lists(st.tuples(st.integers(0, 4), st.floats(0, 9)), min_size=1, max_size=40),
    count=st.integers(1, 5),
)
@settings(max_examples=60, deadline=None)
def test_each_group_keeps_its_highest_values(rows: list[tuple[int, float]], count: int) -> None:
    groups, value = np.array([group for group, _ in rows]), np.array([value for _, value in rows])
    kept = best_of_each(groups, value, count)
    for group in set(groups):
        inside, outside = value[kept & (groups == group)], value[~kept & (groups == group)]
        assert len(inside) == min(count, (groups == group).sum())
        assert not len(outside) or inside.min() >= outside.max()
