"""How often the kernel ended a process for want of memory."""

from __future__ import annotations

from pathlib import Path


def kernel_oom_kills() -> int:
    """How many processes the kernel has ended for want of memory here so far.

    In this process's control group where the kernel tells (trainings share it), else on the whole machine.
    """
    for path in (*_group_files(), Path("/proc/vmstat")):
        try:
            lines = path.read_text().splitlines()
        except OSError:
            continue
        counts = [line.split()[1] for line in lines if line.startswith("oom_kill ")]
        if counts:
            return int(counts[0])
    return 0


def _group_files() -> list[Path]:
    """Return the files where control groups of version 2 and 1 count.

    Inside a container the group is the mount's root.
    """
    root = Path("/sys/fs/cgroup")
    own = ""
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
        own = next((line[3:].strip("/") for line in lines if line.startswith("0::")), "")
    except OSError:
        pass
    return [root / own / "memory.events", root / "memory.events", root / "memory" / "memory.oom_control"]
