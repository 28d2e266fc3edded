"""`wait_s`: an answer that waits for news (portal/serving/parking.py)."""

from __future__ import annotations

from rest_framework.response import Response

from portal.accounts.requests import ApiRequest
from portal.api.common.fields import StrictSerializer, WrittenNumber
from portal.serving import parking
from scheduler.selectors.signs import Aspect, Watched, signs_of

LONGEST_WAIT_S = 60


class WaitQuery(StrictSerializer):
    wait_s = WrittenNumber(
        min_value=1,
        max_value=LONGEST_WAIT_S,
        required=False,
        help_text="Wait so long for news; the answer is the same one afterwards, news or not.",
    )


class News:
    """News of one job for one request; made before anything else is read."""

    def __init__(self, request: ApiRequest, job_id: str, aspect: Aspect, wait_s: int | None) -> None:
        self._subject, self._wait_s = Watched(job_id, aspect), wait_s
        self._asker = (type(request.auth).__name__, request.auth.pk if request.auth else request.user.pk)
        self._seen = signs_of([self._subject]).get(self._subject, "") if wait_s else ""

    @property
    def arrived(self) -> bool:
        """Has something changed since the request came?"""
        return parking.first_seen() not in (None, self._seen)

    def await_more(self) -> Response | None:
        """The answer that nobody sees, if the request is to wait.

        Where it has waited, cannot or shall not, None: it is answered now.
        """
        if self._wait_s is None:
            return None
        is_kept = parking.park(self._subject, seen=self._seen, for_s=self._wait_s, asker=self._asker)
        return Response(status=204) if is_kept else None
