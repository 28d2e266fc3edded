"""A claim's record that outlives the agent: DIR/spool/CLAIM/claim.json."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from trainer.agent.claims.outcome import ClaimEnd
from trainer.agent.storage.folder import NodeFolder, read_json, write_json
from trainer.protocol import Outcome, ProtocolError, Spec, to_json
from trainer.protocol_parsing import parse_spec


@dataclass(slots=True, kw_only=True)
class ClaimRecord:
    """A claim's spec and its progress.

    began: its training left the queue of its executor, where there is one.
    ending: how it ended.
    ended: whether all its files are delivered.
    """

    spec: Spec
    folder: NodeFolder
    began: bool = False
    ending: ClaimEnd | None = None
    ended: bool = False

    @property
    def run(self) -> Path:
        """The training's folder."""
        return self.folder.runs / self.spec.claim

    @property
    def spool(self) -> Path:
        """The agent's own folder for this claim."""
        return self.folder.spool / self.spec.claim

    @property
    def process_file(self) -> Path:
        """Says that a training was started; nothing starts a second one."""
        return self.run / "process.json"

    def save(self) -> None:
        """Write it down. Raises OSError."""
        for path in (self.spool, self.run):
            path.mkdir(mode=0o700, exist_ok=True)
        ending = None if self.ending is None else to_json(self.ending)
        spec = to_json(self.spec)
        value = {"spec": spec, "began": self.began, "ending": ending, "ended": self.ended}
        write_json(self.spool / "claim.json", value)


def load_record(folder: NodeFolder, claim: str) -> ClaimRecord | None:
    """The record of a claim, or None where it cannot be read."""
    value = read_json(folder.spool / claim / "claim.json")
    if value is None:
        return None
    try:
        ending = value["ending"]
        return ClaimRecord(
            spec=parse_spec(value["spec"]),
            folder=folder,
            began=bool(value["began"]),
            ending=None if ending is None else ClaimEnd(**{**ending, "outcome": Outcome(ending["outcome"])}),
            ended=bool(value["ended"]),
        )
    except (KeyError, TypeError, ValueError, ProtocolError):
        return None
