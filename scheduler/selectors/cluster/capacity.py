"""How much of the cluster is in use, by GPU model."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db.models import Avg, Count, Exists, OuterRef, Q

from scheduler.models import Allocation, Gpu
from scheduler.selectors.silence import trusted_since
from scheduler.states import NodeState


def load(now: datetime) -> list[Mapping[str, Any]]:
    """Return one entry per GPU model, most GPUs first, in one query.

    Its keys are `model`, `total`, `ready`, `held` and `util`.
    ready: on nodes that take new work, and of which something was heard lately.
    held: by live attempts.
    util: mean of those that report it, and of which something was heard lately, 0..1.
    """
    heard = Q(node__last_seen_at__gte=trusted_since(now))
    takes_work = heard & Q(node__state=NodeState.READY)
    held = Allocation.objects.filter(gpu=OuterRef("pk"), released_at__isnull=True)
    gpus = Gpu.present.annotate(is_held=Exists(held)).values("model")
    counted = gpus.annotate(
        total=Count("pk"),
        ready=Count("pk", filter=takes_work),
        held=Count("pk", filter=Q(is_held=True)),
        mean_util=Avg("util", filter=heard),
    )
    return list(counted.order_by("-total", "model"))
