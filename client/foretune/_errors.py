"""What can go wrong, by the portal's codes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._models import JobFields


class ForetuneError(Exception):
    """The base of all errors of this package."""


class NotConfigured(ForetuneError):
    """No portal or no token is named; the message says how to name one."""


class Unreachable(ForetuneError):
    """The portal could not be reached, however often it was tried."""


class BrokenDownload(ForetuneError):
    """What arrived is not what the portal holds: the digests differ."""


class WaitedTooLong(ForetuneError, TimeoutError):
    """The job had not ended by the time that one was ready to wait; it goes on."""


class ApiError(ForetuneError):
    """The portal refused.

    code: the portal's, such as `invalid`. fields: what is wrong with each field, by name.
    status: of the answer, as HTTP has it. request_id: as the portal's log has it.
    answer: what else stands beside code and message, such as the `lines` of a refused file.
    """

    def __init__(
        self,
        message: str,
        *,
        code: str = "",
        status: int = 0,
        fields: Mapping[str, Any] | None = None,
        request_id: str = "",
        answer: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.message, self.code, self.status = message, code, status
        self.fields = dict(fields or {})
        self.request_id, self.answer = request_id, dict(answer or {})


class BadRequest(ApiError):
    """Something is wrong with what was sent; `fields` says with what."""


class NotSignedIn(ApiError):
    """There is no token, or one that is unknown, has expired or was ended."""


class NotAllowed(ApiError):
    """The token's scope or the person's role is too small."""


class NotFound(ApiError):
    """There is no such object, or it is somebody else's."""


class Conflict(ApiError):
    """The object is in another state than the request expects: read it again."""


class PlanOutdated(Conflict):
    """What the plan promised holds no more; `answer` has the difference."""


class Throttled(ApiError):
    """Too many requests, also after waiting as long as the portal asked for."""


class ServerError(ApiError):
    """The portal's own mistake; its log has it under `request_id`."""


class Unavailable(ServerError):
    """The portal is busy or restarts."""


class JobFailed(ForetuneError):
    """The job ended without success.

    job: as it ended. reason: why. remedy: what to change; empty where nobody knows.
    log_tail: the last lines of its log.
    """

    def __init__(self, job: JobFields, *, reason: str, remedy: str = "", log_tail: str = "") -> None:
        said = f"{job.state}: {reason}" if job.error else f"was {job.state}."
        super().__init__(f"Job {job.id} {said}" + (f" {remedy}" if remedy else ""))
        self.job, self.reason, self.remedy, self.log_tail = job, reason, remedy, log_tail


_BY_CODE: Mapping[str, type[ApiError]] = {"plan_outdated": PlanOutdated}
_BY_STATUS: Mapping[int, type[ApiError]] = {
    401: NotSignedIn,
    403: NotAllowed,
    404: NotFound,
    409: Conflict,
    412: Conflict,
    429: Throttled,
    502: Unavailable,
    503: Unavailable,
    504: Unavailable,
}


def refusal(*, status: int, body: object, request_id: str) -> ApiError:
    """The exception for an answer that is no success.

    body: its JSON, or its text where it is none.
    """
    error = body.get("error") if isinstance(body, Mapping) else None
    error = error if isinstance(error, Mapping) else {}
    code = str(error.get("code", ""))
    message = (
        error.get("message") or (body if isinstance(body, str) else "") or f"The portal answered {status}."
    )
    kind = _BY_CODE.get(code) or _BY_STATUS.get(status) or (ServerError if status >= 500 else BadRequest)
    return kind(
        str(message),
        code=code,
        status=status,
        fields=error.get("fields") if isinstance(error.get("fields"), Mapping) else {},
        request_id=request_id,
        answer={name: value for name, value in error.items() if name not in ("code", "message", "fields")},
    )
