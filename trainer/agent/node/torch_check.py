"""Check that torch can train on these GPUs.

`python -m trainer.agent.node.torch_check NUMBER` prints the obstacle. It is a process of its
own, because it needs torch and the agent must stay small. Nothing is put on a GPU: trainings of
an earlier agent may be on it.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import warnings
from collections.abc import Iterable, Sequence
from typing import Any

from trainer.agent.errors import SetupError
from trainer.agent.node.environment import IMPORT_FOLDER
from trainer.agent.node.user import RunAs
from trainer.protocol import GpuFacts

_REMEDY = "docs/nodes.md says how to install one that fits"


def check_torch(gpus: Sequence[GpuFacts], run_as: RunAs | None) -> None:
    """Raise SetupError if trainings could not use these GPUs.

    Otherwise each job would fail here in turn.
    run_as: the user they run as; not every user may open the driver's files.
    """
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, (IMPORT_FOLDER, os.environ.get("PYTHONPATH")))),
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "CUDA_VISIBLE_DEVICES": ",".join(gpu.uuid for gpu in gpus),
    }
    command = [sys.executable, "-m", "trainer.agent.node.torch_check", str(len(gpus))]
    try:
        done = subprocess.run(
            command,
            env=environment,
            cwd="/",
            user=None if run_as is None else run_as.uid,
            group=None if run_as is None else run_as.gid,
            extra_groups=None if run_as is None else [],
            capture_output=True,
            text=True,
            timeout=300,
            check=True,
        )
    except subprocess.CalledProcessError as error:
        last = (error.stderr.strip().splitlines() or ["no message"])[-1]
        raise SetupError(f"torch does not run on this node: {last}") from error
    except (OSError, subprocess.SubprocessError) as error:
        raise SetupError(f"torch does not run on this node: {error}") from error
    if done.stdout.strip():
        raise SetupError(
            f"trainings could not use this node's GPUs: {done.stdout.strip()}. To offer CPU slots instead, "
            "start the agent with an empty CUDA_VISIBLE_DEVICES"
        )


def obstacle(torch: Any, expected: int) -> str:
    """Return the obstacle to training on `expected` GPUs, with the remedy.

    It is empty if there is none.
    """
    if torch.version.cuda is None:
        return f"torch {torch.__version__} is a build without CUDA; {_REMEDY}"
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        usable = torch.cuda.is_available()
    if not usable:
        why = "; ".join(str(warning.message) for warning in said) or "see nvidia-smi"
        return f"torch {torch.__version__} (CUDA {torch.version.cuda}) finds none: {why}"
    found = torch.cuda.device_count()
    if found < expected:
        return f"torch sees {found} of {expected}; is one held back from this process, or broken?"
    for index in range(found):
        if not has_code(torch.cuda.get_device_capability(index), torch.cuda.get_arch_list()):
            major, minor = torch.cuda.get_device_capability(index)
            return (
                f"torch {torch.__version__} has no code for {torch.cuda.get_device_name(index)} (compute "
                f"capability {major}.{minor}); {_REMEDY}"
            )
    return ""


def has_code(capability: tuple[int, int], built_for: Iterable[str]) -> bool:
    """Does a build for these architectures run on a GPU of this compute capability?

    `sm_XY` runs on the same major version from X.Y on, `compute_XY` (compiled as it loads) on all later.
    """
    for name in built_for:
        match = re.fullmatch(r"(sm|compute)_(\d+)(\d)[a-z]?", name)
        if match is None:
            continue
        kind, major, minor = match[1], int(match[2]), int(match[3])
        if (major, minor) <= capability and (kind == "compute" or major == capability[0]):
            return True
    return False


if __name__ == "__main__":
    import torch

    print(obstacle(torch, int(sys.argv[1])))
