"""The commands whose interface others rely on."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from knowledge.core.data.sources import generic
from knowledge.importing.service import import_history, load_shipped
from knowledge.models import Execution
from tests.knowledge.conftest import NOW
from tests.knowledge.core.model.test_lfb import PLAIN
from tests.knowledge.predictors.test_learning import rows

REQUEST = {
    "model": "llama3.2-1b",
    "params": {"tuning": "full"},
    "inventory": [{"gpu_model": "L40S", "node_sizes": [2]}],
}


@pytest.mark.django_db
def test_recommend_prints_the_recommendation_as_json() -> None:
    out = io.StringIO()
    call_command("recommend", json=json.dumps(REQUEST), stdout=out)
    found = json.loads(out.getvalue())
    assert found["bound"]["tuning"] == "full"
    assert found["params"]["tuning"] == {"value": "full", "by": "user", "reason": "You set this value."}
    assert found["options"][0]["step_s"] > 0
    assert {"weights", "gradients"} <= set(found["memory_parts"])
    assert found["options"][0]["config"]["gpu_model"] == "L40S"


POOL = REQUEST["inventory"][0]
WRONG = [
    ({"bugdet": 5}, "bugdet: is not a field"),
    ({"model": None}, "model: is needed"),
    ({"model": 7}, "model: must be a text"),
    ({"goal": "best"}, "goal: must be one of"),
    ({"goal": "deadline"}, "deadline_s: is needed for the goal deadline"),
    ({"deadline_s": 0}, "deadline_s: must be above 0"),
    ({"deadline_s": "3600"}, "deadline_s: must be a number"),
    ({"budget": float("nan")}, "budget: must be a number"),
    ({"budget": 10**400}, "budget: must be a number"),
    ({"params": ["full"]}, "params: must be an object"),
    ({"params": {"lora_rank": 8}}, "lora_rank: is not a parameter"),
    ({"workload": {"rows": 9}}, "workload.lengths: needs pairs"),
    ({"workload": {"lengths": [[512]]}}, "workload.lengths: needs pairs"),
    ({"workload": {"lengths": [[-512, 5]]}}, "workload.lengths: must be a whole number"),
    ({"workload": {"rows": 10, "lengths": [[512, 5000]]}}, "workload.rows: is 10, but lengths count 5,000"),
    ({"inventory": POOL}, "inventory: must be a list"),
    ({"inventory": [{**POOL, "node_sizes": []}]}, r"inventory\[0\].node_sizes: is needed"),
    ({"inventory": [{**POOL, "node_sizes": [1.5]}]}, r"inventory\[0\].node_sizes: must be a whole number"),
    ({"inventory": [{**POOL, "price_per_gpu_hour": -1}]}, "price_per_gpu_hour: must be 0 or more"),
    ({"inventory": [{**POOL, "memory_bytes": 0}]}, "memory_bytes: must be a whole number"),
    ({"inventory": [{**POOL, "network": "smoke"}]}, "network: must be one of"),
    ({"inventory": [{**POOL, "gpu_model": "X"}]}, "The GPU 'X' is not in the catalogue"),
    ({"max_nodes": 0}, "max_nodes: must be a whole number"),
]


@pytest.mark.parametrize(("changed", "said"), WRONG)
def test_recommend_names_the_field_that_it_cannot_use(changed: dict[str, object], said: str) -> None:
    with pytest.raises(CommandError, match=said):
        call_command("recommend", json=json.dumps({**REQUEST, **changed}))


@pytest.mark.parametrize("request_json", ["{", "[]", "null", '{"params": {}}'])
def test_recommend_explains_a_request_it_cannot_read(request_json: str) -> None:
    with pytest.raises(CommandError, match="Example"):
        call_command("recommend", json=request_json)


def _csv(row: dict[str, str]) -> bytes:
    return (",".join(row) + "\n" + ",".join(row.values()) + "\n").encode()


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (None, "cannot be read as UTF-8 text"),
        (b"\xff\xfe", "cannot be read as UTF-8 text"),
        (b"", "nothing was written"),
        (b"model_name,method\na,b\n", "nothing was written"),
        (_csv({**PLAIN, "number_gpus": "two"}), "number_gpus"),
        (_csv({**PLAIN, "origin": "elsewhere"}), "No row has an origin that begins with page:"),
    ],
)
def test_a_shipped_history_that_cannot_be_built_is_left_alone(
    tmp_path: Path, table: bytes | None, said: str
) -> None:
    given, out = tmp_path / "runs.csv", tmp_path / "out.csv"
    out.write_text("as before")
    if table is not None:
        given.write_bytes(table)
    with pytest.raises(CommandError, match=said):
        call_command("build_shipped_history", str(given), str(out))
    assert out.read_text() == "as before"


def test_a_shipped_history_is_built_of_the_rows_of_pages(tmp_path: Path) -> None:
    given, out = tmp_path / "runs.csv", io.StringIO()
    given.write_bytes(_csv(PLAIN))
    call_command("build_shipped_history", str(given), str(tmp_path / "out.csv"), stdout=out)
    assert out.getvalue().startswith("1 row written")
    with pytest.raises(CommandError, match="cannot be written"):
        call_command("build_shipped_history", str(given), str(tmp_path / "none" / "out.csv"))


@pytest.mark.django_db
def test_the_shipped_history_loads_once() -> None:
    call_command("load_shipped_history", stdout=io.StringIO())
    call_command("load_shipped_history", stdout=io.StringIO())
    assert Execution.objects.count() == 3376
    assert Execution.objects.filter(status="refused").count() == 952
    assert not Execution.objects.filter(learn_validity=True, origin__contains="kavier").exists()


@pytest.mark.django_db
def test_rows_that_an_older_version_shipped_make_way_for_what_is_known_of_them_now() -> None:
    (mine,) = rows(1, seed=3)
    import_history(text=generic.write([replace(mine, source="llmfinetuningbench")]), now=NOW)
    import_history(text=generic.write([replace(mine, source="csv")]), now=NOW)
    out = io.StringIO()
    call_command("load_shipped_history", stdout=out)
    assert "1 of an older version removed" in out.getvalue()
    assert Execution.objects.count() == 3376 + 1


@pytest.mark.django_db
def test_shipped_files_of_one_source_do_not_drive_each_other_out() -> None:
    texts = [generic.write(rows(3, seed=seed)) for seed in (4, 5)]
    for _ in range(2):
        _, gone = load_shipped(texts=texts, now=NOW)
        assert gone == 0
        assert Execution.objects.count() == 6
