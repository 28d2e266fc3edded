"""Files between node and portal, tried for as long as somebody waits for them."""

from __future__ import annotations

import hashlib
import logging
import os
import threading
from collections.abc import Callable
from pathlib import Path

from trainer.agent.errors import (
    ContentLost,
    Declined,
    InputLost,
    Interrupted,
    PortalAway,
    PortalFull,
    PortalRefused,
    TooMuch,
)
from trainer.agent.portal_api.client import Portal
from trainer.agent.storage.folder import open_inside
from trainer.protocol import File, Outcome, Spec
from trainer.protocol_parsing import safe_path

log = logging.getLogger(__name__)

LONGEST_PAUSE_S = 15.0
TIMES_LOST = 2  # a content that arrives damaged once may have been damaged on its way
SPARE_BYTES = 100 * 2**20  # a node needs this much more than the inputs to start a training


class Transfers:
    """Uploads and downloads of one claim.

    given_up: ends the attempts: the file is not needed any more.
    """

    def __init__(self, portal: Portal, spec: Spec, given_up: threading.Event) -> None:
        self._portal, self._spec, self._given_up = portal, spec, given_up
        self._dispensable = threading.Event()

    def wait_for_no_room(self) -> None:
        """From now on a full portal refuses: what is still to come is worth no wait."""
        self._dispensable.set()

    def fetch_inputs(self, run: Path, stopping: threading.Event) -> None:
        """Download training data and checkpoint into RUN/inputs.

        Raises InputLost if the portal has them no more, Declined if this node alone cannot have them,
        Interrupted when the claim is stopped meanwhile.
        """
        checkpoint = _resume_files(self._spec)
        files = [*self._spec.inputs, *checkpoint]
        free = os.statvfs(run).f_bavail * os.statvfs(run).f_frsize
        needed = sum(file.bytes for file in files) + SPARE_BYTES
        if free < needed:
            raise Declined(f"disk full: {free:,} bytes are free and {needed:,} are needed")
        for file in files:
            destination = run / "inputs" / file.path
            if not destination.exists():
                outcome = Outcome.CHECKPOINT if file in checkpoint else Outcome.DATA
                self._fetch(file, destination, stopping, outcome)

    def _fetch(self, file: File, destination: Path, stopping: threading.Event, lost: Outcome) -> None:
        fetch = self._portal.fetch
        for time in range(1, TIMES_LOST + 1):
            try:
                return self._persist(
                    f"fetching {file.path}",
                    lambda: fetch(self._spec.claim, self._spec.fence, file, destination, stopping),
                    stopping,
                )
            except ContentLost as error:
                if time == TIMES_LOST:
                    raise InputLost(f"the portal has lost {file.path}: {error}", lost) from error
            except (PortalRefused, TooMuch) as error:
                raise Declined(f"input {file.path} could not be fetched: {error}") from error
        return None

    def upload(self, run: Path, name: str) -> File:
        """Upload RUN/name as the artifact of that name. Returns what the portal now holds.

        Raises PortalRefused or TooMuch if the portal refuses it, PortalFull once nobody waits for room there,
        OSError if it is unreadable, Interrupted.
        """
        file = describe(run, name, name)
        self.send(file, lambda: open_inside(run, name))
        return file

    def send(self, file: File, opened: Callable[[], int]) -> None:
        """Upload the content that `opened()` reads.

        It returns a new descriptor for each attempt. Raises as `upload` does.
        """
        self._persist(
            f"uploading {file.path}",
            lambda: self._portal.upload(self._spec.claim, self._spec.fence, file, opened(), self._given_up),
            self._given_up,
        )

    def _persist(self, what: str, attempt: Callable[[], None], stopping: threading.Event) -> None:
        """Try until it works; an unreachable portal is no reason to fail."""
        pause_s = 0.2
        while not stopping.is_set():
            try:
                return attempt()
            except PortalAway as error:
                if isinstance(error, PortalFull) and self._dispensable.is_set():
                    raise
                log.warning(f"{what}: trying again", extra={"claim": self._spec.claim, "error": str(error)})
                stopping.wait(max(pause_s, error.retry_after_s))
                pause_s = min(pause_s * 2, LONGEST_PAUSE_S)
        raise Interrupted(what)


def _resume_files(spec: Spec) -> list[File]:
    if spec.resume is None or spec.resume.stored != "portal":
        return []
    return [
        File(path=f"resume/{file.path}", sha256=file.sha256, bytes=file.bytes) for file in spec.resume.files
    ]


def describe(folder: Path, name: str, path: str) -> File:
    """Return size and digest of a file below `folder`, under the name `path`.

    Raises OSError if it has none.
    """
    if not safe_path(name):
        raise OSError(f"{name!r} is not a name of a file that may be uploaded")
    with os.fdopen(open_inside(folder, name), "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        return File(path=path, sha256=digest, bytes=file.tell())
