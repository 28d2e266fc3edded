"""Run a whole portal on this machine until Ctrl-C.

It is `python -m portal.ops.launch`, started by run.py.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from portal.ops.launch.embedded import EmbeddedPortal, Options
from portal.ops.launch.preflight import LaunchFailed
from trainer.written import whole


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m portal.ops.launch", description=__doc__)
    parser.add_argument("--host", required=True)
    parser.add_argument("--port", type=whole, required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--once", action="store_true")
    parser.add_argument("--no-train", action="store_true")
    parser.add_argument("--no-speed-test", action="store_true")
    parser.add_argument("--online", action="store_true")
    given = parser.parse_args()
    options = Options(
        host=given.host,
        port=given.port,
        data=given.data,
        once=given.once,
        train=not given.no_train,
        speed_test=not given.no_speed_test,
        online=given.online,
    )
    try:
        return EmbeddedPortal(options).run()
    except LaunchFailed as failed:
        print(failed, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
