"""The Celery tasks of knowledge."""

from __future__ import annotations

from celery import shared_task

from knowledge.predictors import drift_monitor, training
from portal.clock import database_now


@shared_task(name="knowledge.tasks.train", queue="work", ignore_result=True)
def train() -> None:
    """Judge the promises once a day, and retrain if enough is new.

    Most calls find nothing to do.
    """
    drift_monitor.watch(now=database_now())
    training.train(now=database_now())
