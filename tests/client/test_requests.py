"""What is tried again, what an error becomes, and that no token shows."""

from __future__ import annotations

import asyncio
import logging

import httpx2
import pytest

from client import foretune
from client.foretune import AsyncClient, Client
from tests.client.answers import TOKEN, Portal, error, instead_of_sleep, job

DONE = httpx2.Response(201, json=job())
LOST = httpx2.ReadError("the line broke")


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long the client would have slept."""
    slept: list[float] = []
    instead_of_sleep(monkeypatch, slept.append)
    return slept


def test_a_submission_keeps_its_key_over_all_tries(waits: list[float]) -> None:
    answers = (LOST, error(503, **{"Retry-After": "7"}), error(409, "key_in_use"), error(429), DONE)
    portal = Portal(*answers)
    assert portal.client.jobs.submit(model="m", training_file="file-1").id == "ftjob-1"
    assert len({request.headers["Idempotency-Key"] for request in portal.asked}) == 1
    assert len({request.content for request in portal.asked}) == 1
    assert waits[1] == 7
    assert 0 < waits[0] <= 0.5 <= waits[2] <= 2
    again = Portal(DONE)
    again.client.jobs.submit(model="m", training_file="file-1")
    assert again.asked[0].headers["Idempotency-Key"] != portal.asked[0].headers["Idempotency-Key"]


@pytest.mark.parametrize("passing", [LOST, *(error(status) for status in (408, 429, 502, 503, 504))])
def test_what_does_no_harm_twice_is_tried_five_times(passing: httpx2.Response | Exception) -> None:
    for ask in (
        lambda portal: portal.request("GET", "me/"),
        lambda portal: portal.request("POST", "jobs/", json={}, key="k"),
        lambda portal: portal.jobs.act("ftjob-1", "cancel"),
        lambda portal: portal.recommend("m", "file-1"),
    ):
        portal = Portal(*[passing] * 5)
        with pytest.raises((foretune.ApiError, foretune.Unreachable)):
            ask(portal.client)
        assert len(portal.asked) == 5
    portal = Portal(passing)
    with pytest.raises((foretune.ApiError, foretune.Unreachable)):
        portal.client.request("POST", "jobs/", json={})
    assert len(portal.asked) == 1


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (error(400, "invalid"), foretune.BadRequest),
        (error(413, "too_large"), foretune.BadRequest),
        (error(422, "key_reused"), foretune.BadRequest),
        (error(401, "not_authenticated"), foretune.NotSignedIn),
        (error(403, "permission_denied"), foretune.NotAllowed),
        (error(404, "not_found"), foretune.NotFound),
        (error(409, "illegal_state"), foretune.Conflict),
        (error(409, "plan_outdated"), foretune.PlanOutdated),
        (error(412, "changed_meanwhile"), foretune.Conflict),
        (error(500, "internal_error"), foretune.ServerError),
        (httpx2.Response(502, text="<html>bad gateway"), foretune.Unavailable),
        (httpx2.Response(418, json=["odd"]), foretune.BadRequest),
    ],
)
def test_errors_are_exceptions_by_code(answer: httpx2.Response, kind: type[foretune.ApiError]) -> None:
    portal = Portal(*[answer] * 5)
    with pytest.raises(foretune.ApiError) as raised:
        portal.client.me()
    assert type(raised.value) is kind
    if answer.headers.get("X-Request-ID"):
        assert raised.value.request_id == "r-1"
        assert raised.value.fields == {"params.epochs": ["too many"]}
        assert raised.value.message == "The portal says no."
    assert len(portal.asked) == (5 if answer.status_code == 502 else 1)


def test_a_page_that_is_no_portal_is_said_to_be_none() -> None:
    with pytest.raises(foretune.ApiError, match="address of a portal"):
        Portal(httpx2.Response(200, text="<html>welcome")).client.me()


def test_a_deletion_whose_answer_was_lost_is_done() -> None:
    Portal(LOST, error(404)).client.files.delete("file-1")
    with pytest.raises(foretune.NotFound):
        Portal(error(404)).client.files.delete("file-1")


def test_lists_go_on_page_by_page_only_as_far_as_they_are_read() -> None:
    first = httpx2.Response(200, json={"data": [job(id="a"), job(id="b")], "has_more": True, "next": "b"})
    last = httpx2.Response(200, json={"data": [job(id="c")], "has_more": False, "next": None})
    portal = Portal(first, last)
    found = portal.client.jobs.list(
        state=["queued", "running"], metadata={"commit": "1"}, limit=2, model=None
    )
    assert [next(found).id, next(found).id, len(portal.asked)] == ["a", "b", 1]
    assert [one.id for one in found] == ["c"]
    asked = [str(request.url.query, "ascii") for request in portal.asked]
    assert asked[0] == "state=queued&state=running&metadata%5Bcommit%5D=1&limit=2"
    assert asked[1] == f"{asked[0]}&after=b"


def test_no_token_is_shown_or_logged(caplog: pytest.LogCaptureFixture) -> None:
    portal = Portal(LOST, error(401))
    with caplog.at_level(logging.DEBUG), pytest.raises(foretune.NotSignedIn) as raised:
        portal.client.me()
    shown = [repr(portal.client), str(raised.value), repr(raised.value.__dict__), caplog.text]
    assert not any(TOKEN in text for text in shown)
    assert portal.asked[0].headers["Authorization"] == f"Bearer {TOKEN}"


def test_values_tell_the_portals_names_and_keep_what_they_do_not_know() -> None:
    raw = job(comet="halley", wait={"code": "busy", "text": "All GPUs are taken."})
    found = Portal(httpx2.Response(200, json=raw)).client.jobs.get("ftjob-1")
    assert (found.extra["comet"], found.waiting.code, found.owner.name) == ("halley", "busy", "ada")
    assert found.created_at.isoformat() == "2027-01-01T10:00:00+00:00"
    assert found.raw == raw
    with pytest.raises(AttributeError):
        found.state = "done"  # type: ignore[misc]


def test_the_half_with_an_event_loop_does_the_same() -> None:
    left = [error(503, **{"Retry-After": "0"}), httpx2.Response(201, json=job())]
    mock = httpx2.MockTransport(lambda _: left.pop(0))

    async def submitted() -> str:
        async with AsyncClient("http://portal", TOKEN, transport=mock) as portal:
            return (await portal.jobs.submit(model="m", training_file="file-1")).id

    assert asyncio.run(submitted()) == "ftjob-1"
    assert TOKEN not in repr(AsyncClient("http://portal", TOKEN))


@pytest.mark.parametrize("url", ["portal.example", "ftp://portal", "http://", "http://[::", ""])
def test_an_address_that_is_none_is_refused_at_once(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FORETUNE_URL", raising=False)
    with pytest.raises(foretune.NotConfigured):
        Client(url, TOKEN)
    with pytest.raises(foretune.NotConfigured, match="foretune login"):
        Client("http://portal", "ft-ö")
