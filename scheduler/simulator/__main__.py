"""`python -m scheduler.simulator`: simulate without Django."""

from scheduler.simulator.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
