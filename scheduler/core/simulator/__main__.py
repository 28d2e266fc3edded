"""`python -m scheduler.core.simulator`: simulate without Django."""

from scheduler.core.simulator.door import main

if __name__ == "__main__":
    raise SystemExit(main())
