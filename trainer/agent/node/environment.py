"""The clean environment a training starts with.

It holds the variables that the training needs and nothing of the agent's own.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import trainer

IMPORT_FOLDER = str(Path(trainer.__path__[0]).parent)  # from which child processes import this package

_KEPT = ("PATH", "LANG", "LC_ALL", "TZ", "LD_LIBRARY_PATH", "CUDA_HOME")
# How GPUs and nodes reach each other is the administrator's to say: NCCL_SOCKET_IFNAME, NCCL_IB_HCA, ...
_KEPT_PREFIXES = ("NCCL_", "GLOO_", "TORCH_NCCL_", "PYTORCH_ALLOC_CONF")
_KEPT_ONLINE = ("HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "HF_ENDPOINT")


def training_environment(
    *,
    run: Path,
    models: Path,
    gpus: Sequence[str] | None,
    threads: int,
    offline: bool,
    interface: str = "",
) -> dict[str, str]:
    """Environment variables of one training.

    gpus: their UUIDs, none for CPU slots; None: whatever starts the training says which. threads: of one
    process. offline: the hub is not asked.
    interface: of the network that joins this node to the others of the training, unless the administrator
    named one; on its own gloo takes the one that the host's name leads to, which is often loopback.
    """
    # To NCCL a bare name is a prefix: eth1 would stand for eth10, too.
    network = {"GLOO_SOCKET_IFNAME": interface, "NCCL_SOCKET_IFNAME": f"={interface}"} if interface else {}
    kept = [name for name in os.environ if name.startswith(_KEPT_PREFIXES)]
    kept += _KEPT if offline else (*_KEPT, *_KEPT_ONLINE)
    # An address with a password in it is a secret, and trainings run other people's code.
    inherited = {name: os.environ[name] for name in kept if "@" not in os.environ.get(name, "@")}
    # By UUID: CUDA and the driver's library need not count alike.
    devices = {} if gpus is None else {"CUDA_VISIBLE_DEVICES": ",".join(gpus)}
    return {
        "PATH": os.defpath,
        "LANG": "C.UTF-8",
        # Batches differ in length: without it the allocator keeps blocks that fit none of the later ones.
        "PYTORCH_ALLOC_CONF": "expandable_segments:True",
        **network,
        **inherited,
        "HOME": str(run),
        "TMPDIR": str(run / "tmp"),
        "PYTHONPATH": IMPORT_FOLDER,
        "PYTHONUNBUFFERED": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "OMP_NUM_THREADS": str(threads),
        "MKL_NUM_THREADS": str(threads),
        "OMP_WAIT_POLICY": "PASSIVE",
        "TOKENIZERS_PARALLELISM": "false",
        "HF_HOME": str(models / "huggingface"),
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "HF_HUB_OFFLINE": "1" if offline else "0",
        "TRANSFORMERS_OFFLINE": "1" if offline else "0",
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        **devices,
    }
