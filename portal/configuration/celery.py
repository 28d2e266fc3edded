"""Celery: how messages travel, and which tasks beat sends when.

Messages are hints; the database is the truth.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any


def transport_options(broker_url: str, folder: Path) -> dict[str, Any]:
    """Return the options of kombu's transport.

    folder: where the file transport keeps its messages.
    """
    if broker_url.startswith("filesystem:"):
        return {
            "data_folder_in": str(folder / "queue"),
            "data_folder_out": str(folder / "queue"),
            "control_folder": str(folder / "control"),
            "polling_interval": 0.05,
        }
    return {
        # Longer than the longest task (60 s), else a task runs twice; the two sweeps below bring a
        # killed worker's message back in seconds instead of kombu's 100.
        "visibility_timeout": 300,
        "unacked_restore_interval": 5,
        "unacked_restore_throttle": 1,
        "socket_connect_timeout": 2,
    }


SHADOW_EVERY_S = 30.0  # a policy on probation decides about that much time at once


def beat_schedule(
    *, tick_every_s: float, sweep_every_s: float, market_every_s: float
) -> dict[str, dict[str, Any]]:
    """Return the schedule of beat.

    Each message expires when the next is due, so that none pile up while no worker listens.
    """
    return {
        "tick": _every(tick_every_s, "scheduler.tasks.tick", "control"),
        "positions": _every(tick_every_s, "portal.events.tasks.give_positions", "control"),
        "tell": _every(15.0, "portal.notices.tasks.tell", "work"),
        "sweep": _every(sweep_every_s, "scheduler.tasks.sweep", "control"),
        "refresh options": _every(5.0, "scheduler.tasks.refresh_options", "work"),
        "forecast starts": _every(15.0, "scheduler.tasks.forecast_starts", "predict"),
        "answer starts": _every(5.0, "scheduler.tasks.answer_starts", "predict"),
        "calibrate": _every(5.0, "scheduler.tasks.calibrate", "work"),
        "markets": _every(market_every_s, "scheduler.tasks.markets", "work"),
        "shadow": _every(SHADOW_EVERY_S, "scheduler.tasks.shadow", "predict"),
        "learn": _every(600.0, "knowledge.tasks.train", "work"),
    }


def _every(seconds: float, task: str, queue: str) -> dict[str, Any]:
    return {"task": task, "schedule": seconds, "options": {"queue": queue, "expires": seconds}}
