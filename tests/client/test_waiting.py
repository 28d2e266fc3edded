"""A program that waits for a job, while the portal is away or busy for a moment."""

from __future__ import annotations

import httpx
import pytest

from client.foretune.http import ApiError, PortalClient

BUSY = httpx.Response(503, json={"error": {"message": "The portal is busy right now."}})
DONE = httpx.Response(200, json={"internal_state": "succeeded"})
READY = httpx.Response(200, json={"data": [{"name": "alpha", "state": "ready"}]})


def client(*answers: httpx.Response | Exception) -> PortalClient:
    left = iter(answers)

    def answer(_request: httpx.Request) -> httpx.Response:
        found = next(left)
        if isinstance(found, Exception):
            raise found
        return found

    made = PortalClient("http://portal", "token")
    made.http = httpx.Client(base_url="http://portal", transport=httpx.MockTransport(answer))
    return made


def test_waiting_outlasts_a_portal_that_is_busy_or_away() -> None:
    portal = client(BUSY, httpx.ConnectError("refused"), BUSY, DONE)
    assert portal.wait("ftjob-1", every_s=0)["internal_state"] == "succeeded"
    client(BUSY, READY).wait_for_node("alpha")


def test_waiting_ends_with_an_error_that_stays_or_after_its_time() -> None:
    gone = httpx.Response(404, json={"error": {"message": "There is no job ftjob-1."}})
    with pytest.raises(ApiError, match="There is no job"):
        client(BUSY, gone).wait("ftjob-1", every_s=0)
    with pytest.raises(TimeoutError):
        client(BUSY, BUSY, BUSY).wait("ftjob-1", timeout_s=0.0)


def test_a_single_question_says_that_the_portal_is_busy() -> None:
    with pytest.raises(ApiError, match="503 The portal is busy right now"):
        client(BUSY).job("ftjob-1")
