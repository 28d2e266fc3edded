"""Parsing of what a node sends to the portal: its enrolment and its syncs."""

from __future__ import annotations

import re
from typing import Any

from trainer.message_reader import Reader
from trainer.protocol import (
    LONGEST_NOTICE_S,
    MAX_REPORTS_PER_SYNC,
    ClaimState,
    Enrol,
    GpuUse,
    Outcome,
    Phase,
    ProtocolError,
    Report,
    ReportKind,
    Sync,
)
from trainer.protocol_parsing.facts import parse_facts
from trainer.written import clean_name

_NODE_TOKEN = re.compile(r"fnode-[A-Za-z0-9_-]{43,}\Z")


def parse_enrol(raw: Any) -> Enrol:
    """Parse a node's enrolment.

    The protocol is read first, so that an old agent hears that it is old.
    """
    reader = Reader(raw, "body")
    return Enrol(
        protocol=reader.whole("protocol"),
        join_token=reader.text("join_token", limit=200),
        name=_name(reader),
        facts=parse_facts(reader.raw.get("facts"), "body.facts"),
        node_token=_node_token(reader),
    )


def _name(reader: Reader) -> str:
    """The name that people see; a wrong one is refused with the remedy."""
    try:
        return clean_name(reader.text("name", limit=100))
    except ValueError as wrong:
        raise ProtocolError(f"{reader.path}.name", str(wrong)) from wrong


def _node_token(reader: Reader) -> str:
    token = reader.text("node_token", "", limit=200)
    if token and not _NODE_TOKEN.match(token):
        raise ProtocolError(f"{reader.path}.node_token", "must be fnode- and at least 43 random characters")
    return token


def _report(reader: Reader) -> Report:
    kind = reader.text("kind")
    if kind not in set(ReportKind):
        raise ProtocolError(f"{reader.path}.kind", f"must be one of {', '.join(ReportKind)}")
    return Report(seq=reader.whole("seq", low=1), kind=ReportKind(kind), body=reader.table("body"))


def _claim_state(reader: Reader) -> ClaimState:
    phase, outcome = reader.text("phase"), reader.text("outcome", "")
    if phase not in set(Phase):
        raise ProtocolError(f"{reader.path}.phase", f"must be one of {', '.join(Phase)}")
    if outcome not in {"", *Outcome} or (phase == Phase.ENDED) != bool(outcome):
        raise ProtocolError(
            f"{reader.path}.outcome", f"goes with the phase ended and is one of {', '.join(Outcome)}"
        )
    exit_code = reader.raw.get("exit_code")
    return ClaimState(
        claim=reader.ident("claim"),
        fence=reader.whole("fence", low=1),
        phase=Phase(phase),
        outcome=Outcome(outcome) if outcome else None,
        exit_code=None if exit_code is None else reader.whole("exit_code", low=-255, high=255),
        reason=reader.text("reason", "", limit=4000),
        reports=tuple(_report(entry) for entry in reader.items("reports", MAX_REPORTS_PER_SYNC)),
    )


def _gpu_use(reader: Reader) -> GpuUse:
    return GpuUse(
        index=reader.whole("index", high=1023),
        util=min(1.0, reader.number("util", 0.0)),
        memory_used_bytes=reader.whole("memory_used_bytes", 0),
    )


def parse_sync(raw: Any) -> Sync:
    """A node's sync message."""
    reader = Reader(raw, "body")
    facts, withdraw = reader.raw.get("facts"), reader.raw.get("withdraw_in_s")
    return Sync(
        protocol=reader.whole("protocol"),
        boot_id=reader.ident("boot_id"),
        seq=reader.whole("seq", 0),
        claims=tuple(_claim_state(entry) for entry in reader.items("claims", 1024)),
        gpus=tuple(_gpu_use(entry) for entry in reader.items("gpus", 1024)),
        facts=None if facts is None else parse_facts(facts, "body.facts"),
        withdraw_in_s=None if withdraw is None else min(LONGEST_NOTICE_S, reader.number("withdraw_in_s")),
    )
