"""Bad input of the kind "CSV history", and what a good file leaves behind."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from knowledge.core.data.measurement import Measurement, known_rows
from knowledge.core.data.sources import generic, registry
from knowledge.core.data.sources.table import (
    LONGEST_REMARK,
    LONGEST_SETTING,
    LONGEST_SOURCE,
    LONGEST_STACK,
    BadTable,
)
from knowledge.importing import service
from knowledge.importing.service import BATCH, import_history, imported_values
from knowledge.models import Execution
from knowledge.selectors import exported
from tests.harness.hostile import bounded
from tests.knowledge.conftest import CATALOGUE, NOW

HEADER = (
    "model_name,method,gpu_model,number_gpus,tokens_per_sample,per_device_batch_size,status,tokens_per_second"
)
GOOD = "llama3.1-8b,lora,NVIDIA-A100-SXM4-80GB,2,512,4,ok,1234.5"
HISTORY = Path(__file__).parents[4] / "shared" / "data" / "history"
SHARED = [
    ("lfb", "llmfinetuningbench/runs.csv", 3827),
    ("fma", "fms-acceleration/runs.csv", 1157),
    ("mlperf", "mlperf-llama2-70b-lora/runs.csv", 780),
    ("litgpt", "litgpt/finetune_table.csv", 53),
    ("vectorlm", "vectorlm/throughput.csv", 18),
]


def text(*lines: str, header: str = HEADER) -> str:
    return "\n".join((header, *lines)) + "\n"


@pytest.mark.parametrize(
    ("content", "line", "column", "words"),
    [
        (text(GOOD.replace("1234.5", "inf")), 2, "tokens_per_second", "not between"),
        (text(GOOD.replace("1234.5", "-3")), 2, "tokens_per_second", "not between"),
        (text(GOOD, GOOD.replace("1234.5", "1.234,5".replace(",", ";"))), 3, "tokens_per_second", "number"),
        (text(GOOD.replace("NVIDIA-A100-SXM4-80GB", "A1000")), 2, "gpu_model", "not in the catalogue"),
        (text(GOOD.replace("512", "")), 2, "tokens_per_sample", "is empty"),
        (text(GOOD.replace(",2,", ",2.5,")), 2, "number_gpus", "whole number"),
        (text(GOOD.replace("lora", "magic")), 2, "method", "not one of"),
        (text(GOOD.replace(",ok,", ",fine,")), 2, "status", "not one of"),
        (text(GOOD.replace(",ok,", ",,")), 2, "status", "is empty"),
        (text(GOOD.replace("1234.5", "1e300")), 2, "tokens_per_second", "not between"),
        (text(GOOD + "," + "s" * 61, header=HEADER + ",source"), 2, "source", "longer than 60"),
        (text(GOOD + "," + "n" * 21, header=HEADER + ",network"), 2, "network", "longer than 20"),
        (
            text(GOOD + ",9" + "0" * 8, header=HEADER + ",gradient_accumulation_steps"),
            2,
            "per_device_batch_size",
            "effective batch",
        ),
        (text(GOOD + ",9"), 2, "line", "cells instead of"),
        (text(GOOD, header=HEADER.replace("method", "model_name", 1)), 1, "model_name", "twice"),
        (text(GOOD, header=HEADER.replace("method", "way")), 1, "method", "missing"),
        (text(GOOD).replace(",", ";"), 1, "model_name", "separated by commas"),
        (text(GOOD).replace(",", "\t"), 1, "model_name", "separated by commas"),
        (
            text(GOOD + ",-1", header=HEADER + ",runtime_s"),
            2,
            "runtime_s",
            "not between",
        ),  # an end before the start
        ("", 1, "model_name", "missing"),
    ],
)
@pytest.mark.django_db
def test_one_bad_cell_imports_nothing_and_is_named(content: str, line: int, column: str, words: str) -> None:
    with pytest.raises(BadTable) as bad:
        import_history(text=content, now=NOW)
    assert bad.value.errors[0][:2] == (line, column)
    assert words in bad.value.errors[0][2]
    assert not Execution.objects.exists()


def test_the_longest_texts_are_those_that_the_columns_hold() -> None:
    longest = {**LONGEST_SETTING, **LONGEST_STACK, **LONGEST_REMARK, "source": LONGEST_SOURCE}
    assert {name: Execution._meta.get_field(name).max_length for name in longest} == longest


@pytest.mark.django_db
def test_long_remarks_are_cut_and_the_same_file_again_adds_nothing() -> None:
    long = text(GOOD + f",{'o' * 999},{'v' * 999}", header=HEADER + ",origin,software")
    assert import_history(text=long, now=NOW).added == 1
    assert import_history(text=long, now=NOW).added == 0
    assert import_history(text=generic.write(exported()), now=NOW).added == 0


@pytest.mark.django_db
def test_byte_order_mark_and_windows_line_ends_are_accepted() -> None:
    report = import_history(text="\ufeff" + text(GOOD).replace("\n", "\r\n"), now=NOW)
    assert report.added == 1


@pytest.mark.django_db
def test_the_same_file_again_adds_nothing_but_repeats_within_it_count() -> None:
    twice = text(GOOD, GOOD)
    assert import_history(text=twice, now=NOW).added == 2
    assert import_history(text=twice, now=NOW).added == 0


@pytest.mark.django_db
def test_imported_rows_stay_marked_and_use_the_catalogue_s_names() -> None:
    import_history(text=text(GOOD), now=NOW)
    row = Execution.objects.get()
    assert (row.source, row.attempt_id) == ("csv", None)
    assert (row.model_name, row.gpu_model) == ("meta-llama/Llama-3.1-8B", "A100-SXM4-80GB")
    assert row.precision is None


@pytest.mark.django_db
def test_rows_above_the_hardware_s_peak_are_kept_but_not_learnt_from() -> None:
    report = import_history(text=text(GOOD.replace("1234.5", "9e9")), now=NOW)
    assert report.flagged == 1
    assert "above the hardware's peak" in Execution.objects.get().flag_reason


@pytest.mark.django_db
def test_a_broken_launch_rule_is_refused_with_its_reason() -> None:
    header = HEADER + ",expert_parallel"
    line = GOOD.replace(",ok,1234.5", ",failed,") + ",4"
    assert import_history(text=text(line, header=header), now=NOW).refused == 1
    assert "expert-parallel" in Execution.objects.get().flag_reason


def test_texts_that_look_like_formulas_are_escaped_on_export_and_come_back() -> None:
    header, line = HEADER + ",origin", GOOD + ",=1+1"
    rows = registry.parse(text(line, header=header), CATALOGUE)
    written = generic.write(rows)
    assert ",'=1+1," in written
    assert generic.parse(written, CATALOGUE) == rows


@pytest.mark.django_db
def test_the_command_lists_bad_lines(tmp_path: Path) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(text(GOOD.replace("1234.5", "fast")))
    with pytest.raises(CommandError, match="line 2, tokens_per_second"):
        call_command("import_history", str(path))


@pytest.mark.shared_data
@pytest.mark.skipif(not HISTORY.exists(), reason="../shared/data is not here")
@pytest.mark.parametrize(("source", "name", "count"), SHARED)
def test_published_sources_are_recognised_and_survive_our_schema(source: str, name: str, count: int) -> None:
    content = (HISTORY / name).read_text(encoding="utf-8")
    assert registry.detect(content) == source
    rows = registry.parse(content, CATALOGUE)
    assert len(rows) == count
    assert known_rows(rows, CATALOGUE) == rows
    assert generic.parse(generic.write(rows), CATALOGUE) == rows


@pytest.mark.shared_data
@pytest.mark.skipif(not HISTORY.exists(), reason="../shared/data is not here")
def test_launch_rules_explain_what_the_benchmark_refused_and_nothing_that_ran() -> None:
    rows = registry.parse((HISTORY / "llmfinetuningbench/runs.csv").read_text(encoding="utf-8"), CATALOGUE)
    assert sum(row.status == "refused" for row in rows) == 952


@pytest.mark.django_db(transaction=True)
def test_rows_are_made_before_the_database_lets_nobody_else_write(monkeypatch: pytest.MonkeyPatch) -> None:
    waited = []

    def values(row: Measurement) -> dict[str, Any]:
        waited.append(connection.in_atomic_block)
        return imported_values(row)

    monkeypatch.setattr(service, "imported_values", values)
    assert import_history(text=text(GOOD, GOOD), now=NOW).added == 2
    assert waited == [False, False]


@pytest.mark.django_db
def test_rows_are_stored_by_few_statements(django_assert_max_num_queries: Any) -> None:
    lines = [GOOD.replace("1234.5", str(number)) for number in range(1, 1201)]
    lookups = -(-len(lines) // BATCH)
    with django_assert_max_num_queries(lookups + 5):
        assert import_history(text=text(*lines), now=NOW).added == len(lines)
    assert [row.tokens_per_second for row in exported()] == list(range(1, 1201))
    assert set(Execution.objects.values_list("created_at", flat=True)) == {NOW}


def test_unknown_models_are_not_compared_with_all_known_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unknown models are not compared with the known ones for suggestions.

    The comparison takes milliseconds per row and minutes per file, and nobody reads its result.
    """
    monkeypatch.setattr(difflib, "get_close_matches", pytest.fail)
    lines = [GOOD.replace("llama3.1-8b", f"llama3.1-9b-{number}") for number in range(10)]
    assert not known_rows(registry.parse(text(*lines), CATALOGUE), CATALOGUE)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (",".join(f"c{number}" for number in range(300_000)), "is longer than"),
        (",".join(["a", "b"] * 40_000), "has more than 1,000 cells"),
        (HEADER + "\n" + "'" * 20_000_000, "is longer than"),
        ("\n".join(["a," * 500] * 40_000), "this column is there twice"),
    ],
    ids=["many columns", "doubled columns", "quotes", "long lines"],
)  # fmt: skip
def test_the_largest_tables_take_bounded_time(content: str, message: str) -> None:
    """The largest tables are refused in bounded time.

    Each column's name was once looked for among all others, for an hour in a header of 20 MB.
    """
    with bounded(seconds=5), pytest.raises(BadTable, match=message):
        registry.parse(content, CATALOGUE)
