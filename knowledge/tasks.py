"""The Celery tasks of knowledge; their senders name the queue, `work`."""

from __future__ import annotations

from celery import shared_task

from knowledge.log_formats.asking import ask_next_format
from knowledge.predictors import drift_monitor, training
from knowledge.script_readings.asking import MOST_AT_ONCE, ask_next_script
from portal.clock import database_now


@shared_task(name="knowledge.tasks.train", ignore_result=True)
def train() -> None:
    """Judge the promises once a day, and retrain if enough is new.

    Most calls find nothing to do.
    """
    drift_monitor.watch(now=database_now())
    training.train(now=database_now())


@shared_task(name="knowledge.tasks.read_scripts", ignore_result=True)
def read_scripts() -> None:
    """Let a language model read a few scripts and log lines that wait for it."""
    for _ in range(MOST_AT_ONCE):
        if not (ask_next_script() or ask_next_format()):
            return
