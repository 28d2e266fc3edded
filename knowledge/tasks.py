"""The Celery door of knowledge."""

from __future__ import annotations

from celery import shared_task
from django.utils import timezone

from knowledge import learning


@shared_task(name="knowledge.tasks.train", queue="work", ignore_result=True)
def train() -> None:
    """Retrain if enough is new; most calls find nothing to do and return at once."""
    learning.train(now=timezone.now())
