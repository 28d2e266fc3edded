"""The fixed command, and scores equal to those of the set's own program."""

from __future__ import annotations

import importlib.util
import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from knowledge.catalogue.shipped_catalogue import shipped_catalogue
from portal.intents.core.reading import read
from portal.intents.evaluate import baseline
from portal.intents.evaluate.labelled import answer_of, cases_of, evaluate, setting_of
from portal.intents.evaluate.scoring import score

KEYS = {
    "cases", "precision", "recall", "f1", "exact", "wrong_stated", "needed_asked", "asked_without_need",
    "forbidden_filled", "baseline_f1", "p95_ms",
}  # fmt: skip
SET = Path(__file__).resolve().parents[3].parent / "shared" / "data" / "intents"

CASE: dict[str, Any] = {
    "id": "a1",
    "kind": "need",
    "text": "phi-4 on poems.jsonl, 3 epochs, not with LoRA",
    "now": "2026-03-10T15:00:00+01:00",
    "timezone": "Europe/Berlin",
    "files": ["poems.jsonl"],
    "nodes": [{"gpu_model": "L40S", "gpus": 4, "nodes": 1}],
    "newest_job_file": None,
    "teams": [],
    "currency": "EUR",
    "gold": {
        "fields": {
            "model": {"value": "microsoft/phi-4", "origin": "stated"},
            "training_file": {"value": "poems.jsonl", "origin": "stated"},
            "epochs": {"value": 3, "origin": "stated"},
        },
        "question": None,
        "complaints": [],
        "forbidden": ["tuning"],
    },
}


def written(folder: Path, *cases: dict[str, Any]) -> Path:
    file = folder / "set.jsonl"
    file.write_text("\n".join(json.dumps(case) for case in cases), encoding="utf-8")
    return file


def test_the_command_prints_the_fixed_keys_and_needs_no_database(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    call_command("evaluate_intents", set=written(tmp_path, CASE), json=out, stdout=StringIO())
    answer = json.loads(out.read_text())
    assert answer.keys() == KEYS
    assert (answer["cases"], answer["f1"], answer["exact"], answer["forbidden_filled"]) == (1, 1.0, 1.0, 0)
    assert answer["baseline_f1"] < 1


def test_a_case_complains_of_places_that_its_nodes_do_not_give() -> None:
    setting = setting_of(CASE)
    for said, fields in (("on 300 GPUs", ["number_gpus"]), ("on an H200", ["gpu_model"]), ("on 4 L40S", [])):
        reading = read(f"phi-4 on poems.jsonl {said}", setting)
        assert answer_of(reading, setting)["complaints"] == fields


def test_what_labels_call_method_is_our_tuning(tmp_path: Path) -> None:
    named = {"method": {"value": "lora", "origin": "stated"}}
    gold = {"fields": named, "question": {"field": "method", "or": ["epochs", "method"]},
            "optional": {"fields": named, "questions": True}, "forbidden": ["method", "seed"]}  # fmt: skip
    [case] = cases_of(written(tmp_path, {**CASE, "text": "with LoRA", "gold": gold}))
    ours = {"tuning": named["method"]}
    assert case["gold"] == {
        "fields": ours, "question": {"field": "tuning", "or": ["epochs", "tuning"]},
        "optional": {"fields": ours, "questions": True}, "forbidden": ["tuning", "seed"],
    }  # fmt: skip
    assert evaluate([case])["recall"] == 1.0


def test_a_wrong_line_is_named(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="line 2 is no case"):
        call_command("evaluate_intents", set=written(tmp_path, CASE, {"id": "a2"}), stdout=StringIO())


def answers(
    *rows: tuple[str, Any, str], question: Any = None, complaints: tuple[str, ...] = ()
) -> dict[str, Any]:
    fields = {name: {"value": value, "origin": origin} for name, value, origin in rows}
    return {"a1": {"fields": fields, "question": question, "complaints": []}}


def test_wrong_missing_and_needless_values_count_as_the_readme_says() -> None:
    given = answers(
        ("epochs", 3.0, "stated"), ("model", "microsoft/phi-2", "stated"), ("tuning", "lora", "inferred")
    )
    found = score([CASE], given)
    assert found["precision"] == found["recall"] == pytest.approx(1 / 3)
    assert found["wrong_stated"] == pytest.approx(1 / 3)
    assert (found["exact"], found["forbidden_filled"]) == (0.0, 1)


def test_an_optional_value_that_is_right_counts_for_neither() -> None:
    case = {**CASE, "gold": {**CASE["gold"], "optional": {"fields": {"tuning": {"value": "full"}}}}}
    rows = [(name, row["value"], "stated") for name, row in CASE["gold"]["fields"].items()]
    assert score([case], answers(*rows, ("tuning", "full", "stated")))["exact"] == 1.0
    assert score([case], answers(*rows, ("tuning", "lora", "stated")))["precision"] == 0.75


def test_a_question_counts_if_each_choice_is_allowed() -> None:
    asks = {"field": "model", "among": ["A/B", "C/D"]}
    case = {**CASE, "gold": {**CASE["gold"], "question": asks}}
    good = answers(question={"field": "model", "choices": ["a/b"]})
    assert score([case], good)["needed_asked"] == 1.0
    assert score([case], answers(question={"field": "model", "choices": ["E/F"]}))["needed_asked"] == 0.0
    assert score([CASE], good)["asked_without_need"] == 1.0


@pytest.mark.shared_data
@pytest.mark.skipif(not SET.is_dir(), reason="the labelled set is not here")
def test_scores_equal_those_of_the_sets_own_program() -> None:
    spec = importlib.util.spec_from_file_location("score", SET / "score.py")
    assert spec
    assert spec.loader
    theirs = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(theirs)
    cases = cases_of(SET / "develop.jsonl")
    settings = {case["id"]: setting_of(case) for case in cases}
    for given in (
        {c["id"]: answer_of(read(c["text"], settings[c["id"]]), settings[c["id"]]) for c in cases},
        {c["id"]: {"fields": baseline.read(c["text"], settings[c["id"]])} for c in cases},
    ):
        assert score(cases, given, shipped_catalogue().gpu_key) == pytest.approx(theirs.score(cases, given))


@pytest.mark.shared_data
@pytest.mark.skipif(not SET.is_dir(), reason="the labelled set is not here")
def test_the_aims_hold_on_the_development_set() -> None:
    found = evaluate(cases_of(SET / "develop.jsonl"))
    assert found["f1"] >= 0.97
    assert found["wrong_stated"] <= 0.01
    assert found["exact"] >= 0.9
    assert found["needed_asked"] >= 0.95
    assert found["asked_without_need"] <= 0.05
    assert found["baseline_f1"] < 0.75
