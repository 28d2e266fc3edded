"""Parsing of what the portal sends to a node: the answer to a sync, with specs."""

from __future__ import annotations

from typing import Any

from trainer.message_reader import Reader
from trainer.protocol import DEFAULT_LEASE_S, ClaimOrder, ProtocolError, Resources, Resume, Spec, SyncReply
from trainer.protocol_parsing.files import parse_file


def parse_spec(raw: Any) -> Spec:
    """A spec as the portal sends it or as RUN_DIR/spec.json holds it."""
    reader = Reader(raw, "spec")
    resume = reader.raw.get("resume")
    return Spec(
        **{name: reader.text(name) for name in ("job", "attempt", "claim", "recipe", "entry", "model")},
        fence=reader.whole("fence", low=1),
        params=reader.table("params"),
        gpus=_indices(reader),
        resources=_resources(Reader(reader.raw.get("resources"), "spec.resources")),
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


def _resources(reader: Reader) -> Resources:
    run_s = reader.raw.get("run_s")
    return Resources(
        flavor=reader.text("flavor", "", limit=100),
        nodes=reader.whole("nodes", 1, low=1),
        gpus_per_node=reader.whole("gpus_per_node", low=1),
        cores=reader.whole("cores", low=1),
        memory_bytes=reader.whole("memory_bytes", low=1),
        run_s=None if run_s is None else reader.number("run_s"),
        grace_s=reader.number("grace_s"),
    )


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
