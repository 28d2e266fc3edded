"""Exit codes, and errors as people and programs read them."""

from __future__ import annotations

import json
import os
import sys

import click

FAILED, USAGE, NOT_ALLOWED, NOT_FOUND, UNREACHABLE, CONFLICT = 1, 2, 3, 4, 5, 6
FAIL_ON, TIMED_OUT, INTERRUPTED = 7, 124, 130


def exit_code_of(error: Exception, *, as_json: bool) -> int:
    """Print the error on stderr; returns its exit code.

    Raises it again if it is nobody's but ours.
    """
    if isinstance(error, click.exceptions.Exit):
        return error.exit_code
    if isinstance(error, click.Abort):
        return INTERRUPTED
    if isinstance(error, click.ClickException):
        error.show()
        return error.exit_code
    if isinstance(error, BrokenPipeError):
        # Whoever read has enough; Python must not complain of it at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    if isinstance(error, (OSError, UnicodeDecodeError)) and not isinstance(error, TimeoutError):
        message = str(error)
        if isinstance(error, OSError) and error.filename and error.strerror:
            message = f"{error.filename}: {error.strerror}"
        _say({"code": "file", "message": message}, as_json=as_json)
        return USAGE
    return _of_the_client(error, as_json=as_json)


def _of_the_client(error: Exception, *, as_json: bool) -> int:
    from .. import _errors as errors

    codes: tuple[tuple[type[Exception], int], ...] = (
        (errors.JobFailed, FAILED),
        (errors.NotConfigured, NOT_ALLOWED),
        (errors.NotSignedIn, NOT_ALLOWED),
        (errors.NotAllowed, NOT_ALLOWED),
        (errors.NotFound, NOT_FOUND),
        (errors.Conflict, CONFLICT),
        (errors.WaitedTooLong, TIMED_OUT),
        (errors.ServerError, UNREACHABLE),
        (errors.Throttled, UNREACHABLE),
        (errors.Unreachable, UNREACHABLE),
        (errors.BrokenDownload, UNREACHABLE),
        (errors.ForetuneError, USAGE),
    )
    code = next((code for kind, code in codes if isinstance(error, kind)), None)
    if code is None:
        raise error
    said: dict[str, object] = {"message": str(error)}
    if isinstance(error, errors.ApiError):
        said = {
            **said,
            "code": error.code,
            "fields": error.fields,
            "request_id": error.request_id,
            **error.answer,
        }
    if isinstance(error, errors.JobFailed):
        said = {**said, "reason": error.reason, "remedy": error.remedy, "log_tail": error.log_tail}
    _say(said, as_json=as_json)
    return code


def _say(error: dict[str, object], *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps({"error": error}, ensure_ascii=False), err=True)
        return
    from .._tables import plain

    if tail := error.get("log_tail"):
        click.echo(plain(f"{tail}", lines=True).rstrip(), err=True)
    click.echo(f"foretune: {plain(str(error['message']), lines=True)}", err=True)
    fields = error.get("fields")
    for name, said in (fields if isinstance(fields, dict) else {}).items():
        text = "; ".join(map(str, said)) if isinstance(said, list) else str(said)
        if text not in str(error["message"]):
            click.echo(f"  {name}: {text}", err=True)
    lines = error.get("lines")
    for line in lines if isinstance(lines, list) else []:
        text = f"line {line.get('line')}: {line.get('message')}"
        if text not in str(error["message"]):
            click.echo(f"  {text}", err=True)
    if error.get("request_id"):
        click.echo(f"  request {error['request_id']}", err=True)
