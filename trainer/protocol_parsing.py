"""Parsing of the messages between node and portal.

Standard library only; both sides use it. Unknown extra fields are ignored (an agent may be newer or older
than the portal); missing or wrong ones raise `ProtocolError` with the field's path.
"""

from __future__ import annotations

import re
from typing import Any

from trainer.message_reader import Reader, storable
from trainer.names import clean_name
from trainer.protocol import (
    DEFAULT_LEASE_S,
    LONGEST_NOTICE_S,
    MAX_REPORTS_PER_SYNC,
    NODE_KINDS,
    ClaimOrder,
    ClaimState,
    DeclaredSite,
    Enrol,
    File,
    GpuFacts,
    GpuUse,
    NodeFacts,
    Outcome,
    Phase,
    ProtocolError,
    Report,
    ReportKind,
    Resume,
    Spec,
    SpeedRun,
    SpeedTest,
    Sync,
    SyncReply,
)

_HEX64 = re.compile(r"[0-9a-f]{64}\Z")
LEAST = 1e-9  # of figures above 0
MOST_GROUPS = 1024  # of GPUs in a node: sockets, NUMA nodes and so on are numbered below it
_NODE_TOKEN = re.compile(r"fnode-[A-Za-z0-9_-]{43,}\Z")


def parse_file(raw: Any, path: str = "file") -> File:
    """A `File`; its path may not leave the folder it is relative to."""
    reader = raw if isinstance(raw, Reader) else Reader(raw, path)
    name, digest = reader.text("path", limit=300), reader.text("sha256")
    if not safe_path(name):
        raise ProtocolError(f"{reader.path}.path", "must be a relative path without ..")
    if not _HEX64.match(digest):
        raise ProtocolError(f"{reader.path}.sha256", "must be 64 hexadecimal digits")
    return File(path=name, sha256=digest, bytes=reader.whole("bytes"))


def safe_path(name: str) -> bool:
    """Is this a plain relative path?

    It has no absolute, empty, hidden or parent parts, and no control characters.
    """
    parts = name.split("/")
    return bool(name) and all(re.match(r"[A-Za-z0-9_][A-Za-z0-9._+=-]*\Z", part) for part in parts)


def _gpu_facts(reader: Reader) -> GpuFacts:
    optional: dict[str, Any] = {
        name: reader.number(name)
        for name in ("peak_flops", "bandwidth_bytes_s")
        if reader.raw.get(name) is not None
    }
    optional |= {name: _group(reader, name) for name in ("numa", "socket")}
    if reader.raw.get("declared") is not None:
        optional["declared"] = parse_site(reader.raw["declared"], f"{reader.path}.declared")
    return GpuFacts(
        index=reader.whole("index", high=1023),
        model=reader.text("model", limit=100),
        memory_bytes=reader.whole("memory_bytes", low=1),
        uuid=reader.text("uuid", "", limit=100),
        links=reader.texts("links", 100),
        pci=reader.texts("pci", 100),
        **optional,
    )


def parse_site(raw: Any, path: str) -> DeclaredSite:
    """A `DeclaredSite`, as messages and files of an agent's owner hold it."""
    reader = Reader(raw, path)
    groups = {name: reader.whole(name, high=MOST_GROUPS - 1) for name in ("socket", "numa", "switch")}
    nvlink = reader.raw.get("nvlink")
    return DeclaredSite(
        **groups, nvlink=None if nvlink is None else reader.whole("nvlink", high=MOST_GROUPS - 1)
    )


def _group(reader: Reader, name: str) -> int | None:
    return None if reader.raw.get(name) is None else reader.whole(name)


def parse_facts(raw: Any, path: str = "facts") -> NodeFacts:
    """The `NodeFacts` of an enrolment or a sync; GPU indices must be 0, 1, 2 ..."""
    reader = Reader(raw, path)
    gpus = tuple(_gpu_facts(entry) for entry in reader.items("gpus", 1024))
    if not gpus or [gpu.index for gpu in gpus] != list(range(len(gpus))):
        raise ProtocolError(
            f"{path}.gpus", "must list at least one GPU or slot, indices 0, 1, 2 ... in order"
        )
    return NodeFacts(
        hostname=reader.text("hostname", limit=255),
        cores=reader.whole("cores", low=1, high=100_000),
        memory_bytes=reader.whole("memory_bytes", low=1),
        gpus=gpus,
        software=reader.texts("software", 100),
        disk_free_bytes=reader.whole("disk_free_bytes", 0),
        # Agents from before it say nothing: they get every method, as they always did.
        cannot_train=reader.texts("cannot_train", 300),
        speed_tests=tuple(_speed_test(entry) for entry in reader.items("speed_tests", 64)),
        kind=_kind(reader),
        market=storable(reader.text("market", "", limit=100)),
    )


def _kind(reader: Reader) -> str:
    kind = reader.text("kind", "")
    if kind not in {"", *NODE_KINDS}:
        raise ProtocolError(f"{reader.path}.kind", f"must be one of {', '.join(NODE_KINDS)}")
    return kind


def parse_speed_test(raw: Any) -> SpeedTest:
    """A speed test as an agent keeps it."""
    return _speed_test(Reader(raw, "speed_test"))


def _speed_test(reader: Reader) -> SpeedTest:
    problem = storable(reader.text("problem", "", limit=500))
    figures: dict[str, Any] = {}
    if not problem:
        figures = {
            "model": reader.text("model", limit=300),
            "runs": tuple(_speed_run(entry) for entry in reader.items("runs", 16)),
            "startup_s": reader.number("startup_s", low=LEAST),
            "busy_cores": reader.number("busy_cores", 0.0),
        }
    return SpeedTest(
        test=reader.ident("test"), gpu_model=reader.text("gpu_model", limit=100), problem=problem, **figures
    )


def _speed_run(reader: Reader) -> SpeedRun:
    return SpeedRun(
        params=reader.table("params"),
        tokens_per_s=reader.number("tokens_per_s", low=LEAST),
        peak_memory_bytes=reader.whole("peak_memory_bytes", low=1),
    )


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
    """The name that people see; the remedy is told where it was given."""
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


def parse_spec(raw: Any) -> Spec:
    """A spec as the portal sends it or as RUN_DIR/spec.json holds it."""
    reader = Reader(raw, "spec")
    resume = reader.raw.get("resume")
    return Spec(
        **{name: reader.text(name) for name in ("job", "attempt", "claim", "recipe", "entry", "model")},
        fence=reader.whole("fence", low=1),
        params=reader.table("params"),
        gpus=_indices(reader),
        rank=reader.whole("rank", 0),
        nodes=reader.whole("nodes", 1, low=1),
        inputs=tuple(parse_file(entry) for entry in reader.items("inputs", 100)),
        resume=None if resume is None else _resume(Reader(resume, "spec.resume")),
        checkpoint_every_s=reader.number("checkpoint_every_s", 60.0),
        upload_limit_bytes=reader.whole("upload_limit_bytes", 2_000_000_000),
        hang_after_s=reader.number("hang_after_s", 1800.0),
        rendezvous=reader.text("rendezvous", ""),
        shape=reader.table("shape"),
    )


def _indices(reader: Reader) -> tuple[int, ...]:
    gpus = reader.raw.get("gpus", ())
    if not isinstance(gpus, list | tuple) or not all(type(index) is int and index >= 0 for index in gpus):
        raise ProtocolError(f"{reader.path}.gpus", "must be a list of whole numbers from 0")
    return tuple(gpus)


def _resume(reader: Reader) -> Resume:
    return Resume(
        step=reader.whole("step"),
        stored=reader.text("stored"),
        claim=reader.ident("claim"),
        files=tuple(parse_file(entry) for entry in reader.items("files", 1000)),
    )


def _order(reader: Reader) -> ClaimOrder:
    """Parse one claim's order.

    A spec that is not understood spoils its own claim only: error `bad_spec`.
    """
    error, detail, spec = reader.text("error", ""), reader.text("detail", ""), None
    if reader.raw.get("spec") is not None:
        try:
            spec = parse_spec(reader.raw["spec"])
        except ProtocolError as problem:
            error, detail = "bad_spec", str(problem)
    return ClaimOrder(
        claim=reader.ident("claim"),
        fence=reader.whole("fence"),
        want=reader.text("want", "run"),
        stop_for=reader.text("stop_for", ""),
        grace_s=reader.number("grace_s", 30.0),
        spec=spec,
        acked_seq=reader.whole("acked_seq", 0),
        rendezvous=reader.text("rendezvous", ""),
        error=error,
        detail=detail,
    )


def parse_reply(raw: Any) -> SyncReply:
    """The portal's answer to a sync."""
    reader = Reader(raw, "reply")
    return SyncReply(
        next_sync_s=reader.number("next_sync_s"),
        draining=bool(reader.raw.get("draining")),
        lease_s=reader.number("lease_s", DEFAULT_LEASE_S),
        claims=tuple(_order(entry) for entry in reader.items("claims", 1024)),
    )
