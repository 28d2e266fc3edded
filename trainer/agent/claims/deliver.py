"""Delivery of a finished training to the portal.

It covers the checkpoint or the outputs, the result and the whole log.
"""

from __future__ import annotations

import logging
import threading
from dataclasses import replace
from typing import Any

from trainer.agent.claims.checkpoints import CheckpointUploader
from trainer.agent.claims.collect import log_size
from trainer.agent.claims.outcome import ClaimEnd
from trainer.agent.claims.store import ClaimRecord
from trainer.agent.claims.watch import read_result
from trainer.agent.errors import Interrupted, PortalFull, PortalRefused, TooMuch
from trainer.agent.portal_api.transfers import Transfers, describe
from trainer.agent.storage.spool import Spool
from trainer.protocol import Outcome, ProtocolError, ReportKind
from trainer.protocol_parsing import parse_file

log = logging.getLogger(__name__)

LOG_UPLOAD_BYTES = 50_000_000
FIGURES_TRIES, FIGURES_PAUSE_S = 20, 1.0  # well within the time in which a stop has to be confirmed


def deliver(
    record: ClaimRecord,
    spool: Spool,
    transfers: Transfers,
    uploader: CheckpointUploader,
    given_up: threading.Event,
) -> ClaimEnd:
    """Upload and report the files of a training, and return how the claim ended.

    It returns once all of this is done. A success whose outputs the portal cannot have is an
    error: its owner would find nothing. A success that was cancelled before its outputs were
    uploaded is a stop.
    """
    ending = record.ending
    if ending is None:
        raise ValueError("a claim is delivered after its training ended")
    try:
        if ending.outcome == Outcome.SUCCEEDED:
            ending = _outputs(record, transfers, ending)  # these wait for the portal's disk
        transfers.wait_for_no_room()
        if ending.outcome != Outcome.SUCCEEDED and not given_up.is_set():
            _last_checkpoint(record, uploader)
        _log(record, transfers)
    except Interrupted:
        if ending.outcome == Outcome.SUCCEEDED:
            ending = replace(ending, outcome=Outcome.STOPPED, reason="cancelled before its outputs were kept")
    _figures(record, spool, given_up)
    return ending


def _figures(record: ClaimRecord, spool: Spool, given_up: threading.Event) -> None:
    """Report the measured figures.

    On a disk that stays full the figures are lost, but the ending is not.
    """
    result = read_result(record.run)
    if result is None or ReportKind.RESULT in spool.kinds:
        return
    for _ in range(FIGURES_TRIES):
        try:
            spool.add(ReportKind.RESULT, result)
            return
        except OSError as error:
            log.error("the figures are not kept", extra={"claim": record.spec.claim, "error": str(error)})
        if given_up.wait(FIGURES_PAUSE_S):
            return


def _last_checkpoint(record: ClaimRecord, uploader: CheckpointUploader) -> None:
    try:
        uploader.finish()
    except OSError as error:
        log.error(
            "the last checkpoint was not stored", extra={"claim": record.spec.claim, "error": str(error)}
        )


def _outputs(record: ClaimRecord, transfers: Transfers, ending: ClaimEnd) -> ClaimEnd:
    """Upload from output/ the files that result.json lists.

    Each must be as result.json describes it.
    """
    listed: Any = (read_result(record.run) or {}).get("output", [])
    try:
        for file in [parse_file(entry, "result.output") for entry in listed]:
            if describe(record.run / "output", file.path, file.path) != file:
                raise OSError(f"output/{file.path} is not what result.json says")
            transfers.upload(record.run, f"output/{file.path}")
    except (PortalRefused, TooMuch, ProtocolError, OSError, TypeError) as error:
        log.error("outputs are lost", extra={"claim": record.spec.claim, "error": str(error)})
        reason = f"the training succeeded, but its outputs could not be kept: {error}"
        return replace(ending, outcome=Outcome.ERROR, reason=reason[:1000])
    return ending


def _log(record: ClaimRecord, transfers: Transfers) -> None:
    """Upload the whole log.

    Its end has been reported anyhow, so a refusal is no fault of the training.
    """
    try:
        if 0 < log_size(record.run) <= LOG_UPLOAD_BYTES:
            transfers.upload(record.run, "log.txt")
    except (PortalRefused, TooMuch, PortalFull, OSError) as error:
        log.warning("the log was not kept", extra={"claim": record.spec.claim, "error": str(error)})
