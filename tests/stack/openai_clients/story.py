"""The whole story with the `openai` client: nothing but an address and a key is given.

Run by the client's own interpreter: `story.py WAY FILE`, with OPENAI_BASE_URL and OPENAI_API_KEY set. WAY is
`sync`, `async` or `azure`.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import sys
import time
from pathlib import Path
from typing import Any

import openai

PAUSES = ("pausing", "paused")  # in the published reference, and in no client's list of states
MODEL = "builtin/tiny-llama"


def client_of(way: str) -> Any:
    if way == "azure":
        endpoint = os.environ.pop("OPENAI_BASE_URL").removesuffix("/v1")
        return openai.AzureOpenAI(
            azure_endpoint=endpoint, api_key=os.environ["OPENAI_API_KEY"], api_version="2024-10-21"
        )
    return openai.AsyncOpenAI() if way == "async" else openai.OpenAI()


class Told:
    """Calls a client, sync or async alike, and checks every object against the client's own type of it."""

    def __init__(self, way: str) -> None:
        self.client, self.loop = client_of(way), asyncio.new_event_loop()

    def __call__(self, path: str, *args: Any, **kwargs: Any) -> Any:
        call = self.client
        for name in path.split("."):
            call = getattr(call, name)
        answer = self._waited(call(*args, **kwargs))
        if hasattr(type(answer), "model_validate"):
            values = answer.model_dump(warnings=False)
            if values.get("status") in PAUSES:
                values["status"] = "queued"
            type(answer).model_validate(values)
        return answer

    def all(self, path: str, *args: Any, **kwargs: Any) -> list[Any]:
        """Every row of a list, over all of its pages."""
        page, rows = self(path, *args, **kwargs), []
        while True:
            rows += page.data
            if not page.has_next_page():
                return rows
            page = self._waited(page.get_next_page())

    def _waited(self, answer: Any) -> Any:
        return self.loop.run_until_complete(answer) if inspect.isawaitable(answer) else answer


def until(told: Told, job_id: str, *wanted: str) -> Any:
    end = time.monotonic() + 300
    while time.monotonic() < end:
        job = told("fine_tuning.jobs.retrieve", job_id)
        if job.status in wanted:
            return job
        assert job.status in ("queued", "running", "pausing", "paused"), job
        time.sleep(0.3)
    raise AssertionError(f"{job_id} was not {wanted} in time")


def refused(kind: type[openai.APIStatusError], told: Told, path: str, *args: Any, **kwargs: Any) -> Any:
    try:
        told(path, *args, **kwargs)
    except kind as error:
        assert error.code, error.body
        assert error.type, error.body
        assert error.request_id
        return error
    raise AssertionError(f"{path} was not refused")


def main(way: str, rows: Path) -> None:
    told = Told(way)
    file = told("files.create", file=rows, purpose="fine-tune")
    assert told("files.retrieve", file.id).status == "processed"
    assert told("files.content", file.id).read() == rows.read_bytes()
    if way == "sync":
        told("files.wait_for_processing", file.id)
    job = told(
        "fine_tuning.jobs.create", model=MODEL, training_file=file.id, suffix=way, metadata={"way": way},
        hyperparameters={"n_epochs": 1, "batch_size": "auto", "learning_rate_multiplier": "auto"},
    )  # fmt: skip
    assert job.hyperparameters.n_epochs == 1
    assert job.hyperparameters.batch_size != "auto"
    assert job.portal["promise"]["duration_s"]["value"] > 0
    job = until(told, job.id, "succeeded")
    assert job.trained_tokens > 0
    assert isinstance(job.finished_at, int)
    events = told.all("fine_tuning.jobs.list_events", job.id, limit=3)
    assert len(events) == len({event.id for event in events}) >= 7
    assert any(event.type == "metrics" and event.data["train_loss"] > 0 for event in events)
    names = [one.fine_tuned_model_checkpoint for one in told.all("fine_tuning.jobs.checkpoints.list", job.id)]
    assert names[0] == job.fine_tuned_model
    table = told("files.content", job.result_files[0]).read().decode()
    assert table.startswith("step,train_loss,valid_loss")
    assert job.fine_tuned_model in [model.id for model in told("models.list").data]
    assert told("models.retrieve", job.fine_tuned_model).id == job.fine_tuned_model
    assert told("models.retrieve", MODEL).id == MODEL
    verbs(told, file.id)
    errors(told, file.id)
    assert told("files.delete", file.id).deleted
    assert told("models.delete", job.fine_tuned_model).deleted


def verbs(told: Told, file: str) -> None:
    """Pause and cancel; of a job that ended once and for all."""
    long = {"portal": {"params": {"max_steps": 100_000}}}
    job = told("fine_tuning.jobs.create", model=MODEL, training_file=file, extra_body=long)
    if hasattr(told.client.fine_tuning.jobs, "pause"):
        told("fine_tuning.jobs.pause", job.id)
        until(told, job.id, "paused")
        told("fine_tuning.jobs.resume", job.id)
    assert told("fine_tuning.jobs.cancel", job.id).status == "cancelled"
    pairs = {"n": "2"}
    second = told("fine_tuning.jobs.create", model=MODEL, training_file=file, extra_body=long, metadata=pairs)
    until(told, second.id, "running")
    assert told("fine_tuning.jobs.cancel", second.id).status == "cancelled"
    listed = told.all("fine_tuning.jobs.list", limit=1)
    assert {job.id, second.id} <= {one.id for one in listed}
    found = told("fine_tuning.jobs.list", extra_query={"metadata[n]": "2"}).data
    assert second.id in [one.id for one in found]


def errors(told: Told, file: str) -> None:
    create = "fine_tuning.jobs.create"
    unknown = refused(openai.NotFoundError, told, create, model="gpt-4o-mini", training_file=file)
    assert (unknown.code, unknown.param) == ("model_not_found", "model")
    refused(openai.NotFoundError, told, create, model=MODEL, training_file="file-none")
    method = {"type": "dpo", "dpo": {"hyperparameters": {"beta": 0.1}}}
    dpo = refused(
        openai.BadRequestError, told, create, model=MODEL, training_file=file, extra_body={"method": method}
    )
    assert (dpo.code, dpo.param) == ("unsupported_method", "method.type")
    wandb = [{"type": "wandb", "wandb": {"project": "p"}}]
    refused(openai.BadRequestError, told, create, model=MODEL, training_file=file, integrations=wandb)
    refused(openai.NotFoundError, told, "fine_tuning.jobs.retrieve", "ftjob-none")
    refused(openai.BadRequestError, told, "fine_tuning.jobs.list", after="ftjob-none")
    refused(openai.BadRequestError, told, "files.create", file=("a.jsonl", b"{bad"), purpose="fine-tune")
    refused(openai.PermissionDeniedError, told, "models.delete", MODEL)
    known, told.client = told.client, told.client.with_options(api_key="ft-none")
    assert refused(openai.AuthenticationError, told, "models.list").code == "invalid_api_key"
    told.client = known


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
    print("told")
