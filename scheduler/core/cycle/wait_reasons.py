"""Why a job waits, in words for its owner."""

from __future__ import annotations

from functools import cache, lru_cache

from knowledge.core.domain.types import Option
from scheduler.core.placement.fit import FreeGpus
from scheduler.core.placement.levels import TopologyLevel, asked
from scheduler.core.types import JobInfo, Topology, Wait
from scheduler.states import WaitState

# Python 3.11 takes as long to find a member of an Enum as for a call; each job that waits asks for several.
_BEHIND, _BUSY, _GUARANTEED = WaitState.BEHIND, WaitState.BUSY, Topology.GUARANTEED
# When a job starts for which too few GPUs are free.
HELD = "It starts when running jobs release enough."  # what is released is kept for it
OUTRANKED = "It starts when running jobs release enough, unless jobs that rank before it come meanwhile."
PASSED = "It starts once enough are free at the same time; until then any job that fits may take them first."
STOPPING = (
    "It starts once enough are free, or held by jobs that may be stopped for it; until then any job that fits"
    " may take them first."
)
APART = {
    TopologyLevel.NODE: "in different sockets",
    TopologyLevel.SOCKET: "at different NUMA nodes",
    TopologyLevel.NUMA: "behind different PCIe switches",
    TopologyLevel.PCIE: "not linked by NVLink",
}


def nowhere(job: JobInfo) -> Wait:
    """Say that a job is held, or that no ready node can run it however long it waits."""
    if job.hold:
        return Wait(job.id, WaitState.OPTIONS, job.hold)
    if not job.options and job.nodes_away and not job.no_option:
        return Wait(job.id, WaitState.NO_NODE, job.nodes_away)
    if not job.options:
        why = (
            job.no_option or "No node in service can run it; it starts when a suitable one joins or returns."
        )
        return Wait(job.id, WaitState.NO_OPTION, why)
    if job.closed:
        declines = f" {job.declined}" if job.declined else ""
        return Wait(job.id, WaitState.WINDOW, f"No node is open to it. {job.closed}{declines}")
    if job.declined:
        return Wait(job.id, WaitState.DECLINED, f"No ready node accepts it: {job.declined}")
    if job.only_node:
        return Wait(
            job.id,
            WaitState.CHECKPOINT_NODE,
            f"Its last checkpoint is on {job.only_node} only, and that node is not ready.",
        )
    text = f"Needs {amount(job.options[0])}; no ready node offers that. It starts when one is ready again."
    return Wait(job.id, WaitState.NO_NODE, " ".join(filter(None, (text, job.dearer))))


def busy(job: JobInfo, option: Option, free: FreeGpus, *, behind: str = "", until: str = HELD) -> Wait:
    """Return the reason of a job that waits for GPUs.

    Others hold its GPUs, they are kept for jobs that go first (`behind` names those), or they lie too far
    apart. until: when it starts, as one of the sentences above; which is true depends on the policy.
    """
    count = free.count_for(option, job.avoids)
    apart = _apart(job, option, free) if job.topology is _GUARANTEED else ""
    why = behind if behind and not apart else until
    code = _BEHIND if why == behind else _BUSY
    said = f"{apart} {why}" if apart else _too_few(amount(option), count, why)
    more = job.dearer or job.closed or job.declined  # few have any
    return Wait(
        job.id, code, " ".join(filter(None, (said, job.dearer, job.closed, job.declined))) if more else said
    )


@lru_cache(maxsize=1000)  # jobs that ask for as much are told the same
def _too_few(amount: str, count: int, why: str) -> str:
    return f"Needs {amount}; {count} {'is' if count == 1 else 'are'} free. {why}"


def _apart(job: JobInfo, option: Option, free: FreeGpus) -> str:
    """Say that enough GPUs are free, but not as close as the job requires."""
    required = asked(job, option).required
    found = free.closest_level(option, job.avoids) if required > TopologyLevel.NODE else None
    if found is None or found >= required:
        return ""
    share = f"{option.gpus // option.nodes} are free on one node, but {APART[found]}"
    return f"Needs {amount(option)}. {share}; required: one {required.phrase}."


def amount(option: Option) -> str:
    """An option's demand in words, e.g. `4 A100 GPUs on 2 nodes`."""
    config = option.config
    text = counted_gpus(config.number_gpus, config.gpu_model)
    if config.quantization not in (None, "none"):
        text = f"{text} for {config.tuning}"  # not every node can train it
    return text if config.number_nodes == 1 else f"{text} on {config.number_nodes} nodes"


@cache
def counted_gpus(number: int, model: str = "") -> str:
    """A number of GPUs of a model, or of any, in words: `1 A100 GPU`."""
    unit = "CPU slot" if model == "cpu" else f"{model} GPU".strip()
    return f"{number} {unit}{'' if number == 1 else 's'}"
