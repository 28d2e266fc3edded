"""Importing past executions from the page and over REST."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from rest_framework.test import APIClient

from knowledge.models import Execution
from portal.accounts.models import AuditEntry, User
from scheduler.services import history

pytestmark = pytest.mark.django_db
HEAD = (
    "model_name,method,gpu_model,number_gpus,tokens_per_sample,per_device_batch_size,status,tokens_per_second"
)
RUN = "llama3.1-8b,lora,A100-SXM4-80GB,1,512,4,ok,3000"
OUT_OF_MEMORY = "llama3.1-8b,full,A100-SXM4-80GB,1,512,64,oom,"
UNKNOWN_GPU = "llama3.1-8b,lora,Exotic-9000,1,512,4,ok,3000"
GOOD = "\n".join([HEAD, RUN, OUT_OF_MEMORY])
BAD = "\n".join([HEAD, RUN, UNKNOWN_GPU])


def csv(text: str | bytes, name: str = "ours.csv") -> SimpleUploadedFile:
    return SimpleUploadedFile(name, text.encode() if isinstance(text, str) else text)


def test_a_file_is_imported_once_and_counted_by_source(admin_browser: Client, person: User) -> None:
    assert b"There are no executions yet" in admin_browser.get("/history/").content
    first = admin_browser.post("/history/", {"file": csv(GOOD)}, follow=True).content.decode()
    assert "ours.csv: 2 rows read, 2 added;" in first
    again = admin_browser.post("/history/", {"file": csv(GOOD)}, follow=True).content.decode()
    assert "2 rows read, 0 added;" in again
    assert Execution.objects.count() == 2
    entry = AuditEntry.objects.filter(action="history imported").earliest("pk")
    assert (entry.actor, entry.target, entry.data["added"]) == (person, "ours.csv", 2)


def test_executions_are_found_by_model_and_source_and_come_in_pages(admin_browser: Client) -> None:
    faster = RUN.replace("3000", "9e9")
    runs = [RUN.replace("3000", str(3000 + number)) for number in range(30)]
    text = "\n".join([HEAD, *runs, faster])
    admin_browser.post("/history/", {"file": csv(text)})
    first = admin_browser.get("/history/").content.decode()
    assert "not used for training: " in first
    assert "3,029" in first
    assert "3,000" not in first
    older = f"?after={Execution.objects.order_by('-pk')[24].pk}"
    assert older in first
    assert "3,000" in admin_browser.get(f"/history/{older}").content.decode()
    flagged = admin_browser.get("/history/?learnt=no").content.decode()
    assert "3,029" not in flagged
    assert "not used for training: " in flagged
    assert "No execution matches" in admin_browser.get("/history/?q=mistral").content.decode()
    assert "No execution matches" in admin_browser.get("/history/?source=own").content.decode()
    assert "3,029" in admin_browser.get("/history/?source=csv&q=LLAMA").content.decode()
    for wrong in ("?after=x", "?learnt=maybe"):
        assert admin_browser.get(f"/history/{wrong}").status_code == 400


def test_one_wrong_cell_and_nothing_is_imported(admin_browser: Client) -> None:
    refused = admin_browser.post("/history/", {"file": csv(BAD)})
    shown = refused.content.decode()
    assert refused.status_code == 400
    assert "Nothing was imported." in shown
    assert '<td class="text-end">3</td>' in shown
    assert "Exotic-9000" in shown
    assert not Execution.objects.exists()
    assert not AuditEntry.objects.filter(action="history imported").exists()


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00", b"a,b\n1,2\n", b"\x00" * 100, b'"' * 1000])
def test_what_is_no_history_is_refused_in_words(content: bytes, admin_browser: Client) -> None:
    refused = admin_browser.post("/history/", {"file": csv(content)})
    assert refused.status_code == 400
    assert refused.context["wrong"] or refused.context["form"].errors["file"]


def test_a_file_is_asked_for_and_one_that_is_too_large_sent_to_the_command(
    admin_browser: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert list(admin_browser.post("/history/", {}).context["form"].errors) == ["file"]
    monkeypatch.setattr(history, "LARGEST", 10)
    large = admin_browser.post("/history/", {"file": csv(GOOD)})
    assert "manage.py import_history" in large.context["form"].errors["file"][0]
    monkeypatch.undo()
    monkeypatch.setattr(history, "MOST_LINES", 1)
    long = admin_browser.post("/history/", {"file": csv(GOOD)})
    assert "longer than 1 lines; import it with manage.py" in long.context["form"].errors["file"][0]


def test_the_page_is_for_administrators(browser: Client) -> None:
    assert browser.get("/history/").status_code == 403
    assert browser.post("/history/", {"file": csv(GOOD)}).status_code == 403


def test_a_program_imports_and_reads_the_report_or_the_wrong_cells(admin_api: APIClient) -> None:
    done = admin_api.post("/api/executions/import/?source=csv", {"file": csv(GOOD)}, format="multipart")
    assert (done.status_code, done.json()["rows"], done.json()["added"]) == (200, 2, 2)
    refused = admin_api.post("/api/executions/import/", {"file": csv(BAD)}, format="multipart")
    error = refused.json()["error"]
    assert (refused.status_code, error["code"]) == (400, "bad_file")
    assert {cell["line"] for cell in error["lines"]} == {3}
    assert {"line", "column", "message"} == set(error["lines"][0])
    unknown = admin_api.post("/api/executions/import/?source=excel", {"file": csv(GOOD)}, format="multipart")
    assert list(unknown.json()["error"]["fields"]) == ["source"]
    none = admin_api.post("/api/executions/import/", {}, format="multipart")
    assert list(none.json()["error"]["fields"]) == ["file"]


@pytest.mark.shared_data
def test_a_published_history_is_recognised_by_its_columns(admin_api: APIClient) -> None:
    path = Path(__file__).parents[4] / "shared/data/history/vectorlm"
    found = sorted(path.glob("*.csv"))
    if not found:
        pytest.skip("no shared data")
    for file in found:
        done = admin_api.post("/api/executions/import/", {"file": csv(file.read_bytes())}, format="multipart")
        assert done.status_code == 200, done.json()
