"""Decisions on their way through what is kept of them."""

from __future__ import annotations

from scheduler.core.decisions import decision_json
from scheduler.core.decisions.decision_json import Options, PackedInput, PolicyInput
from scheduler.core.types import ClusterState


class Kept:
    """An input as it is kept, with the options that it names."""

    def __init__(self, state: ClusterState, now: float) -> None:
        packed = {job.id: decision_json.pack_options(job.options) for job in state.jobs if job.options}
        digests = {job: decision_json.options_digest(options) for job, options in packed.items()}
        self.packed = decision_json.pack_input(PolicyInput(state, now), digests)
        self.options: dict[str, Options] = {
            digests[job]: decision_json.unpack_options(options) for job, options in packed.items()
        }

    def read(self) -> PolicyInput:
        return PackedInput(self.packed).given(self.options)
