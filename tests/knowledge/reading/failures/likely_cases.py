"""Errors that no expression knows, in the words of libraries, and lines in no form of an error."""

from __future__ import annotations

from tests.knowledge.reading.failures.cases import STEPS, raised
from tests.knowledge.reading.failures.ends_and_places import through

LIKELY = {
    "options that do not go together": (
        "bad-arguments",
        through(
            "trainer/config/parallel_config.py",
            "__post_init__",
            "ValueError: `tp_size` is not supported together with `fsdp_offload`. Please set only one.",
        ),
    ),
    "an option out of its range": (
        "bad-arguments",
        raised("ValueError: warmup_ratio must be between 0.0 and 1.0, got 5.0", before=""),
    ),
    "samples without messages": (
        "bad-data",
        raised("ValueError: Number of images does not match number of image tokens in messages", before=""),
    ),
    "a version that is too old": (
        "missing-package",
        raised("ImportError: This needs transformers>=9.1, please upgrade transformers", before=""),
    ),
    "shapes that do not match": (
        "code-error",
        raised("RuntimeError: The size of tensor a (8) must match the size of tensor b (4) at dimension 3"),
    ),
}
LOOSE = {
    "behind words of a launcher": (
        "disk-full",
        f"{STEPS}>> worker-3 says: write failed: No space left on device\n",
    ),
    "behind words of a person": (
        "code-error",
        f"{STEPS}my run ended with ZeroDivisionError: division by zero\n",
    ),
}
FORMS = {
    "a notebook's heading": (
        "code-error",
        f"{STEPS}-----------------\nAttributeError                   Traceback (most recent call last)\n"
        "<ipython-input-9> in <cell line: 2>()\n"
        "----> 2 trainer = prepare(\n/env/chat_templates.py in prepare()\n",
    ),
    "a notebook in JSON": ("code-error", '{\n\t"name": "KeyError",\n\t"message": "\'labels\'"\n'),
    "an error of a worker": (
        "code-error",
        "ray.exceptions.RayTaskError(NotImplementedError): ray::TaskRunner.run() (pid=1)\n",
    ),
    "a compiler's": ("gpu-driver", "nvcc fatal   : Unsupported gpu architecture 'compute_999'\n"),
    "a service of one's own": (
        "code-error",
        raised(
            "ConnectionError: HTTPConnectionPool(host='localhost', port=8097): Max retries"
            " exceeded with url: /env (Caused by NewConnectionError('Failed to establish a new connection'))"
        ),
    ),
    "a hub": (
        "hub-unreachable",
        raised(
            "ConnectionError: HTTPSConnectionPool(host='hub.example', port=443): Max retries"
            " exceeded with url: /m (Caused by NewConnectionError('Failed to establish a new connection'))"
        ),
    ),
    "memory, as a name": (
        "gpu-memory",
        raised("jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: hbm"),
    ),
    "values that are none": (
        "loss-not-finite",
        raised(
            "ValueError: Expected parameter logits to be real, but found invalid values: tensor([[nan, nan]])"
        ),
    ),
    "a shell in Chinese": ("permission", "./train.sh: 行 25: /data/train.tfrecord: 权限不够\n"),
    "a shell in German": ("crash", f"{STEPS}Speicherzugriffsfehler (Speicherabzug geschrieben)\n"),
    "a disk in Russian": (
        "disk-full",
        raised("OSError: [Errno 28] На устройстве не осталось свободного места: '/out/checkpoint-40'"),
    ),
    "a script that is not there": (
        "bad-arguments",
        "python: can't open file '/job/full_finetune.py': [Errno 2] No such file or directory\n",
    ),
    "an end that ray only warns of": (
        "crash",
        f"{STEPS}2023-01-17 WARNING worker.py:1829 -- A worker died or was killed by an unexpected error.\n",
    ),
    "rights at the hub": (
        "gated-model",
        raised(
            "ConnectionError: HTTP status client error (403 Forbidden), domain: https://huggingface.co/api/m"
        ),
    ),
}
