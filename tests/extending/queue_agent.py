"""An agent in a process of its own, whose trainings wait in the queue of the toy engine.

python -m tests.extending.queue_agent URL DIR JOIN_TOKEN: the training is that of the agent's own tests, and
begins once RUN/go is there.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

from tests.extending.checkout import HERE
from tests.trainer.agent.fakes.driver import COMMAND
from trainer.agent import loop
from trainer.agent.__main__ import run
from trainer.agent.claims import claim
from trainer.agent.executors.table import EXECUTORS
from trainer.agent.logs import set_up
from trainer.agent.settings import Settings

TOY = HERE / "toys" / "executor" / "trainer" / "agent" / "executors" / "queued.py"
TRAINER = f"""
import json, pathlib, runpy, sys, time
run = pathlib.Path(sys.argv[-1])
while not (run / "go").exists():
    time.sleep(0.05)
read = json.loads((run / "spec.json").read_text())
read["spec"]["params"]["mode"] = "normal"
(run / "spec.json").write_text(json.dumps(read))
runpy.run_path({COMMAND[-1]!r}, run_name="__main__")
"""


def main() -> int:
    """The agent's exit code."""
    set_up()
    found = importlib.util.spec_from_file_location("queued", TOY)
    assert found is not None
    assert found.loader is not None
    toy = importlib.util.module_from_spec(found)
    found.loader.exec_module(toy)
    EXECUTORS["queued"] = toy.QueueExecutor
    loop.SHORTEST_PAUSE_S = claim.LOOK_EVERY_S = 0.05
    url, folder, join_token = sys.argv[1:]
    return run(
        Settings(
            portal=url, dir=Path(folder), name="pool", join_token=join_token, executor="queued",
            command=(sys.executable, "-c", TRAINER), user="nobody,root",
        )
    )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
