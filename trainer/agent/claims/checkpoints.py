"""Checkpoints of a running claim.

They are found when complete, uploaded beside the training, then reported.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from trainer.agent.errors import AgentError, Interrupted, PortalFull, PortalRefused, TooMuch
from trainer.agent.portal_api.transfers import Transfers, describe
from trainer.agent.storage.folder import open_inside, read_json
from trainer.agent.storage.spool import Spool
from trainer.protocol import File, ProtocolError, ReportKind, Spec, to_json
from trainer.protocol_parsing import parse_file

log = logging.getLogger(__name__)

MANIFEST = "manifest.json"
PORTAL, NODE = "portal", "node"


def complete_files(run: Path, step: int) -> list[File] | None:
    """Return the files of a checkpoint, or None unless it is complete.

    The manifest is included. All files must be there as the manifest says. Paths are relative
    to the checkpoint's folder.
    """
    folder = run / "checkpoints" / f"step-{step}"
    manifest = read_json(folder / MANIFEST) or {}
    try:
        files = [parse_file(entry) for entry in manifest["files"]]
        found = [describe(folder, file.path, file.path) for file in files]
        if manifest["step"] != step or found != files:
            return None
        return [*files, describe(folder, MANIFEST, MANIFEST)]
    except (KeyError, TypeError, ProtocolError, OSError):
        return None


def steps(run: Path) -> list[int]:
    """Steps whose checkpoint folders exist, newest first."""
    names = (path.name.removeprefix("step-") for path in run.glob("checkpoints/step-*"))
    return sorted((int(name) for name in names if name.isascii() and name.isdigit()), reverse=True)


class CheckpointUploader:
    """Uploader of the newest checkpoint in a thread of its own.

    Neither training nor heartbeat waits for it.
    """

    def __init__(
        self, spec: Spec, run: Path, spool: Spool, transfers: Transfers, changed: Callable[[], None]
    ) -> None:
        self._spec, self._run, self._spool = spec, run, spool
        self._transfers, self._changed = transfers, changed
        self._thread: threading.Thread | None = None
        self._again = False
        self._lock = threading.Lock()

    def wake(self) -> None:
        """There may be a new checkpoint."""
        with self._lock:
            if self._thread is not None and self._thread.is_alive():
                self._again = True
                return
            self._again = False
            self._thread = threading.Thread(target=self._work, name=f"upload {self._spec.claim}", daemon=True)
            self._thread.start()

    def finish(self) -> None:
        """Upload what is left and return when that is done."""
        thread = self._thread
        if thread is not None:
            thread.join()
        self._store_newest()

    def _work(self) -> None:
        try:
            self._store_newest()
            while self._take_again():
                self._store_newest()
        except Interrupted:
            return
        except (AgentError, OSError) as error:
            log.warning("a checkpoint was not stored", extra={"claim": self._spec.claim, "error": str(error)})

    def _take_again(self) -> bool:
        with self._lock:
            again, self._again = self._again, False
            if not again:
                self._thread = None
            return again

    def _store_newest(self) -> None:
        """Store the newest complete checkpoint unless it or a newer one is stored already."""
        for step in steps(self._run):
            if step in self._spool.checkpoints:
                return
            files = complete_files(self._run, step)
            if files is not None:
                self._spool.add(ReportKind.CHECKPOINT, self._report(step, files))
                self._changed()
                return
            log.warning(
                "an incomplete checkpoint is left out", extra={"claim": self._spec.claim, "step": step}
            )

    def _report(self, step: int, files: list[File]) -> dict[str, Any]:
        """Upload if the portal takes it. `stored` says where it can be resumed from."""
        stored = NODE
        if sum(file.bytes for file in files) <= self._spec.upload_limit_bytes:
            folder = f"checkpoints/step-{step}"
            try:
                self._upload([replace(file, path=f"{folder}/{file.path}") for file in files])
                stored = PORTAL
            except (PortalRefused, TooMuch, PortalFull) as error:
                log.warning(
                    "the portal takes no checkpoint", extra={"claim": self._spec.claim, "error": str(error)}
                )
        return {"step": step, "stored": stored, "files": [to_json(file) for file in files]}

    def _upload(self, files: Sequence[File]) -> None:
        """Upload the files, all held open meanwhile.

        The training deletes checkpoints when it has newer ones.
        """
        with ExitStack() as held:
            descriptors = []
            for file in files:
                descriptors.append(open_inside(self._run, file.path))
                held.callback(os.close, descriptors[-1])
            for file, descriptor in zip(files, descriptors, strict=True):
                self._transfers.send(file, partial(_from_the_beginning, descriptor))


def _from_the_beginning(descriptor: int) -> int:
    os.lseek(descriptor, 0, os.SEEK_SET)
    return os.dup(descriptor)
