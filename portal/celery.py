"""The Celery application: the portal's side work.

Trainings never run here, since nodes do that.
"""

from __future__ import annotations

import os

# OpenMP threads that spin-wait make prediction up to 60 times slower on shared cores; this must be set
# before numpy is imported anywhere.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
# A worker would run Django's checks, half a second with all that they import, and throw away what they find.
os.environ.setdefault("CELERY_SKIP_CHECKS", "1")

from celery import Celery
from celery.signals import setup_logging

app = Celery("foretune")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["scheduler", "knowledge", "portal.events", "portal.notices"])


@setup_logging.connect
def _use_djangos_logging(**_: object) -> None:
    """Keep Django's logging in workers, so that they log as the web server does.

    Connecting here keeps Celery from installing its own handlers.
    """
