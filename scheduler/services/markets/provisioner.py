"""The command that rents nodes: asked one question at a time, with little trust."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from json import JSONDecodeError
from typing import Any

from trainer.strict_json import RefusedJson, is_number, is_whole, loads

ANSWER_WITHIN_S = 30.0
LONGEST_ANSWER = 100_000


class ProvisionerFailed(Exception):
    """The provisioner gave no answer that can be used; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProvisionerAnswer:
    """The provisioner's answer.

    available: spot nodes that one could hold, those held included.
    accepted: how many nodes are there or will come.
    """

    available: int | None = None
    price: float | None = None
    accepted: int = 0


def ask(
    command: Sequence[str], question: Mapping[str, Any], within_s: float = ANSWER_WITHIN_S
) -> ProvisionerAnswer:
    """Ask the command one question, as JSON on its standard input.

    Raises ProvisionerFailed. Its processes are ended with it if it takes too long.
    """
    try:
        process = subprocess.Popen(
            list(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            start_new_session=True,
        )  # fmt: skip
    except OSError as error:
        raise ProvisionerFailed(f"it cannot be started: {error}") from error
    try:
        said, _ = process.communicate(json.dumps(question).encode(), timeout=within_s)
    except subprocess.TimeoutExpired as late:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise ProvisionerFailed(f"it gave no answer within {within_s:g} s") from late
    finally:
        for pipe in (process.stdin, process.stdout):
            if pipe:
                pipe.close()
    if process.returncode:
        raise ProvisionerFailed(f"it ended with {process.returncode}")
    return _read(said)


def _read(said: bytes) -> ProvisionerAnswer:
    try:
        answer = loads(said[:LONGEST_ANSWER])
    except (JSONDecodeError, RefusedJson, UnicodeDecodeError) as wrong:
        raise ProvisionerFailed("its answer is no JSON") from wrong
    if not isinstance(answer, dict):
        raise ProvisionerFailed("its answer is no JSON object")
    available, price, accepted = answer.get("available"), answer.get("price"), answer.get("accepted", 0)
    if available is not None and not (is_whole(available) and available >= 0):
        raise ProvisionerFailed("available must be a whole number of nodes, or null")
    if price is not None and not (is_number(price) and price >= 0):
        raise ProvisionerFailed("price must be a number of 0 or more, or null")
    if not is_whole(accepted) or accepted < 0:
        raise ProvisionerFailed("accepted must be a whole number of nodes")
    return ProvisionerAnswer(
        available=available, price=None if price is None else float(price), accepted=accepted
    )
