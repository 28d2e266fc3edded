"""The environment of every test process.

It has a data folder of its own, one numeric thread and a patient garbage collector. Loaded by
`-p` in pyproject.toml, because pytest-django reads the settings before any conftest.py.
"""

from __future__ import annotations

import atexit
import gc
import os
import random
import shutil
import tempfile
from pathlib import Path

import pytest

DATA_DIR = tempfile.mkdtemp(prefix="foretune-test-")
atexit.register(shutil.rmtree, DATA_DIR, ignore_errors=True)

os.environ["DATA_DIR"] = DATA_DIR
for broker in ("REDIS_URL", "CELERY_BROKER_URL"):
    os.environ.pop(broker, None)  # tests send their hints into the void; only a live stack has a broker
Path(DATA_DIR, "static").mkdir()  # WhiteNoise warns where collectstatic has not run
os.environ.setdefault("SECRET_KEY", "only for tests")
# A test's own transaction lies idle while it computes.
os.environ["IDLE_TRANSACTION_TIMEOUT_S"] = "600"
# Threads that spin-wait on shared cores make numeric code up to 60 times slower.
os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
os.environ["HF_HUB_OFFLINE"] = "1"

# Modules stay to the end of the process: to look through them every 700 objects takes a fifth of its time.
gc.set_threshold(50_000, 20, 20)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the files of tests in another order for each TEST_ORDER.

    No test may need another that ran before it.
    """
    if order := os.environ.get("TEST_ORDER"):
        items.sort(key=lambda item: random.Random(f"{order} {item.nodeid.split('::')[0]}").random())


def pytest_collection_finish() -> None:
    """Freeze the collected tests for the garbage collector.

    They stay until the end, so that no collection need look through them again.
    """
    gc.collect()
    gc.freeze()


EVERY_EXAMPLE = os.environ.get("EXAMPLES") == "all"
# Random cases are the same in each run, so that none is red by chance; free ones look for new faults.
FREE = EVERY_EXAMPLE or os.environ.get("RANDOM_CASES") == "free"


def examples(number: int) -> int:
    """How many of so many random cases are played: a third, or all with EXAMPLES=all."""
    return number if EVERY_EXAMPLE else max(1, number // 3)
