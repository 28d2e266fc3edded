"""Break a real portal on purpose for some minutes, then judge it.

Run by `python3 run.py chaos`. The last line is the verdict, and the exit code is 0 only if
nothing was violated. --report keeps the whole report in a file, --keep the logs of every
process and the clients' notes in a folder.
"""

from __future__ import annotations

import argparse
import logging
import os
import secrets
import signal
import sys
from pathlib import Path
from types import FrameType

from scheduler.core.policies import LIVE
from tests.harness import environment  # noqa: F401 -- before Django reads its settings
from trainer.written import decimal, whole


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="run.py chaos", description=__doc__)
    made.add_argument("--minutes", type=decimal, default=20, help="for how long faults strike (20)")
    made.add_argument("--seed", default="", help="the run's random numbers; printed first")
    made.add_argument("--control-workers", type=whole, default=1, choices=(1, 2), help="control workers (1)")
    made.add_argument("--lease", default="15", choices=("15", "production"), help="leases of nodes (15 s)")
    made.add_argument(
        "--policy", default="", choices=LIVE, metavar="NAME",
        help="the scheduling policy, stopping jobs early if it stops any",
    )  # fmt: skip
    made.add_argument("--report", type=Path, help="write the report to this file as well")
    made.add_argument("--keep", type=Path, help="copy logs and notes into this folder")
    return made


def interrupted(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def main() -> int:
    options = parser().parse_args()
    options.seed = options.seed or secrets.token_hex(3)
    signal.signal(signal.SIGTERM, interrupted)
    print(f"seed {options.seed}", flush=True)
    os.environ["DJANGO_SETTINGS_MODULE"] = "portal.settings"
    import django

    django.setup()
    logging.getLogger("httpx").setLevel(logging.WARNING)
    logging.getLogger("httpx2").setLevel(logging.WARNING)
    from tests.chaos.run import run  # needs the settings

    try:
        return run(options)
    except KeyboardInterrupt:
        print("interrupted")
        return 130


if __name__ == "__main__":
    sys.exit(main())
