"""An agent in a process of its own that runs the fake trainer.

python driver.py URL DIR EXECUTOR
"""

import sys
from pathlib import Path

from tests.trainer.agent.fakes.fake_portal import JOIN, PAUSE_S
from trainer.agent import loop
from trainer.agent.__main__ import run
from trainer.agent.claims import claim
from trainer.agent.logs import set_up
from trainer.agent.settings import Settings

COMMAND = (sys.executable, str(Path(__file__).with_name("fake_trainer.py")))

if __name__ == "__main__":
    set_up()
    loop.SHORTEST_PAUSE_S = claim.LOOK_EVERY_S = PAUSE_S
    url, folder, executor = sys.argv[1:]
    sys.exit(
        run(
            Settings(
                portal=url,
                dir=Path(folder),
                name="test",
                join_token=JOIN,
                slots=2,
                executor=executor,
                command=COMMAND,
                user="nobody,root",
            )
        )
    )
