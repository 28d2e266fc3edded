"""Portals that answer as a test says, in the place of a network."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import httpx2
import pytest

from client.foretune import Client

Answer = httpx2.Response | Exception
TOKEN = "ft-secret"


def instead_of_sleep(monkeypatch: pytest.MonkeyPatch, note: Callable[[float], object]) -> None:
    """Tell this how long the test's own thread would have slept; other threads sleep as ever."""
    sleep, ours = time.sleep, threading.get_ident()
    asleep = lambda seconds: note(seconds) if threading.get_ident() == ours else sleep(seconds)  # noqa: E731
    monkeypatch.setattr(time, "sleep", asleep)


def error(status: int, code: str = "", **headers: str) -> httpx2.Response:
    body = {
        "error": {"code": code, "message": "The portal says no.", "fields": {"params.epochs": ["too many"]}}
    }
    return httpx2.Response(status, json=body, headers={"X-Request-ID": "r-1", **headers})


def client(answer: Callable[[httpx2.Request], Answer], **options: Any) -> Client:
    def answered(request: httpx2.Request) -> httpx2.Response:
        found = answer(request)
        if isinstance(found, Exception):
            raise found
        return found

    return Client("http://portal", TOKEN, transport=httpx2.MockTransport(answered), **options)


class Portal:
    """Answers what it is given, one after the other, and keeps what it was asked."""

    def __init__(self, *answers: Answer) -> None:
        self.left, self.asked = list(answers), list[httpx2.Request]()
        self.client = client(self.answer)

    def answer(self, request: httpx2.Request) -> Answer:
        request.read()
        self.asked.append(request)
        return self.left.pop(0)


def job(**values: Any) -> dict[str, Any]:
    """A job as lists tell it."""
    progress = {
        "step": 0,
        "total_steps": 20,
        "loss": None,
        "tokens_per_second": None,
        "eta_s": None,
        "end": None,
        "silent_since": None,
    }
    return {
        "id": "ftjob-1",
        "version": 1,
        "state": "running",
        "internal_state": "running",
        "stage": "",
        "name": "",
        "model": "builtin/tiny-llama",
        "goal": "balanced",
        "training_file": "file-1",
        "created_at": "2027-01-01T10:00:00Z",
        "ended_at": None,
        "progress": progress,
        "wait": None,
        "owner": {"id": "user-1", "name": "ada"},
        "error": None,
        "currency": "EUR",
        "comparison": [],
        **values,
    }
