"""Measurements on GPUs can be imported, and the benchmark draws trainings that may start."""

from __future__ import annotations

import csv
from collections import Counter
from itertools import islice
from pathlib import Path

import pytest
from django.core.management import call_command

from benchmarks.trainer.gpu_runs import predicted
from benchmarks.trainer.gpu_runs.measure import SERIES
from benchmarks.trainer.gpu_runs.plan import Planned, Series, plan
from benchmarks.trainer.gpu_runs.rows import Table, result_of, row
from knowledge.catalogue.shipped_catalogue import shipped_catalogue
from knowledge.core.data.sources import registry
from knowledge.core.domain import config_space
from knowledge.models import Execution

CATALOGUE = shipped_catalogue()
FILES = sorted((Path(__file__).resolve().parents[2] / "docs" / "measurements").glob("executions-*.csv"))
RESULT = {
    "outcome": "succeeded",
    "reason": "",
    "step": 4,
    "attempt_tokens": 4 * 8 * 512,
    "tokens_per_s": 1234.5678,
    "train_s": 12.0,
    "peak_memory_bytes": 2 * 10**9,
    "memory_capacity_bytes": 8 * 10**9,
    "software": {"torch": "2", "peft": "1"},
}


def planned() -> Planned:
    config = next(plan("H200-SXM5-141GB", CATALOGUE, Series())).config
    return Planned(config=config, steps=4)


@pytest.mark.django_db
@pytest.mark.parametrize(
    "file",
    [FILES[0], *(pytest.param(file, marks=pytest.mark.slow) for file in FILES[1:])],
    ids=lambda file: file.stem,
)
def test_what_was_measured_is_imported_by_the_portals_own_door(file: Path) -> None:
    rows = list(csv.DictReader(file.read_text(encoding="utf-8").splitlines()))
    call_command("import_history", str(file))
    found = Execution.objects.filter(source="foretune-trainer")
    assert Counter(found.values_list("status", flat=True)) == Counter(row["status"] for row in rows)
    assert found.filter(learn=True).count() == sum(row["learn"] == "1" for row in rows)
    assert not found.filter(status="ok", tokens_per_second=None).exists()
    assert not found.filter(peak_memory_fraction=None).exists()
    call_command("import_history", str(file))
    assert found.count() == len(rows)


def test_there_are_measurements() -> None:
    assert FILES


@pytest.mark.slow
def test_trainings_that_are_drawn_may_start_and_their_beginning_is_a_fair_sample() -> None:
    drawn = list(islice(plan("H100-SXM5-80GB", CATALOGUE, Series()), 60))
    assert [config_space.refused(one.config, CATALOGUE) for one in drawn] == [None] * 60
    assert min(Counter(one.config.tuning for one in drawn).values()) > 10
    assert min(Counter(one.config.model_name for one in drawn).values()) > 2
    assert drawn[:20] == list(islice(plan("H100-SXM5-80GB", CATALOGUE, Series()), 20)), "not the same again"


def test_a_result_becomes_a_row_that_is_imported(tmp_path: Path) -> None:
    one, table = planned(), Table(tmp_path / "rows.csv")
    table.add(row(one, RESULT, "own", 8 * 10**9, "here"))
    table.add(row(one, {**RESULT, "outcome": "oom", "step": 0}, "own", 8 * 10**9, "here"))
    ran, too_large = registry.parse((tmp_path / "rows.csv").read_text(encoding="utf-8"), CATALOGUE)
    assert (ran.config.model_name, ran.status, ran.tokens_per_second) == (
        one.config.model_name,
        "ok",
        1234.57,
    )
    assert ran.peak_memory_fraction == 0.25
    assert ran.config.software == "peft 1 torch 2"
    assert (too_large.status, too_large.tokens_per_second, too_large.padded_tokens) == ("oom", None, None)


def test_a_training_that_left_no_result_tells_its_last_line(tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_text("loading\nkilled\n")
    cells = row(planned(), result_of(tmp_path, -9), "forked", 8 * 10**9, "here")
    assert (cells["status"], cells["learn"]) == ("failed", 0)
    assert cells["reason"] == "its process ended with -9: killed"


@pytest.mark.parametrize("series", SERIES)
def test_each_series_draws_trainings_that_may_start(series: Series) -> None:
    drawn = list(islice(plan("H100-SXM5-80GB", CATALOGUE, series), 5))
    assert [config_space.refused(one.config, CATALOGUE) for one in drawn] == [None] * 5


def test_predictions_are_judged_by_the_rows_that_were_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said, table = tmp_path / "said.csv", Table(tmp_path / "measured.csv")
    one = planned()
    peak, rate = RESULT["peak_memory_bytes"], RESULT["tokens_per_s"]
    figures = {
        "rate": 1.1 * rate, "rate_low": rate, "rate_high": 2 * rate,
        "memory": 0.9 * peak, "memory_low": 0.8 * peak, "memory_high": 0.95 * peak, "p_valid": 0.99,
    }  # fmt: skip
    table.add(row(one, RESULT, "forked", 8 * 10**9, "here"))
    stated = predicted.stated_by(one.config)
    with said.open("w", encoding="utf-8") as stream:
        values = {f"{way}_{name}": value for way in predicted.WAYS for name, value in figures.items()}
        writer = csv.DictWriter(stream, [*stated, *values])
        writer.writeheader()
        writer.writerow({**stated, **values})
    predicted.judge(said, tmp_path / "measured.csv")
    told_lines = capsys.readouterr().out.splitlines()
    assert told_lines[1].endswith("peaks 10.0% -10.0% -10.0% 0%; rates 10.0% +10.0% 0.0% 100%")
    assert told_lines[3].endswith("wrong about feasibility: 0 of 1")
