"""Health and metrics for supervisors and monitors."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

import kombu.exceptions
from django.conf import settings
from django.db import DatabaseError, connection
from django.http import HttpRequest, HttpResponse, JsonResponse
from drf_spectacular.utils import extend_schema
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric, SummaryMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.views import APIView

from knowledge.selectors import drift_alarm, rate_errors, track_record
from portal import disk
from portal.accounts.permissions import AdminOnly
from portal.celery import app
from portal.clock import database_now
from scheduler.selectors.analysis.overview import completions, counts
from scheduler.selectors.analysis.storage import stored_bytes
from scheduler.selectors.cluster.stops import all_stops, recent_levels
from scheduler.states import JobState

LOOPBACK = ("127.0.0.1", "::1")
LATE_TICKS = 30
RECENT_RUNS = 200
A_DAY = timedelta(days=1)


def healthz(request: HttpRequest) -> HttpResponse:  # noqa: ARG001
    """Answer that the process is alive.

    Nothing else is looked at, so that no fault elsewhere restarts it.
    """
    return JsonResponse({"status": "ok"})


def readyz(request: HttpRequest) -> HttpResponse:  # noqa: ARG001
    """Answer 200 when database, broker, scheduling loop and disk are well, else 503.

    The answer says which of them is not, and warns of a disk that is nearly full.
    """
    checks = {"database": _database(), "broker": broker_works()}
    checks["scheduler"] = _scheduler() if checks["database"] == "ok" else "not known without the database"
    now = disk.disk()
    checks["disk"] = now.trouble if now.is_full else "ok"
    ready = all(answer == "ok" for answer in checks.values())
    answer: dict[str, Any] = {"status": "ready" if ready else "not ready", "checks": checks}
    if now.trouble:
        answer["warnings"] = [now.trouble]
    return JsonResponse(answer, status=200 if ready else 503)


def _database() -> str:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError as away:
        return f"does not answer ({type(away).__name__})"
    return "ok"


def broker_works() -> str:
    try:
        with app.connection_for_write() as broker:
            broker.ensure_connection(max_retries=0, timeout=1)
    except (kombu.exceptions.OperationalError, OSError) as away:
        # The address may carry a password, so only the kind of trouble is told.
        return f"does not answer ({type(away).__name__})"
    return "ok"


def _scheduler() -> str:
    last = counts(database_now()).last_tick_at
    if last is None:
        return "has not looked yet; are the Celery worker and beat running?"
    age = (database_now() - last).total_seconds()
    if age > max(LATE_TICKS * settings.TICK_EVERY_S, settings.TICK_TAKEOVER_S):
        return f"looked {age:.0f} s ago; are the Celery worker and beat running?"
    return "ok"


class AdminOrLoopback(BasePermission):
    """Administrators, and monitors on this machine that no proxy stands before."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        here = request.META.get("REMOTE_ADDR") in LOOPBACK and "X-Forwarded-For" not in request.headers
        return here or AdminOnly().has_permission(request, view)


@extend_schema(exclude=True)
class MetricsView(APIView):
    """Prometheus text format."""

    permission_classes = [AdminOrLoopback]

    def get(self, request: Request) -> HttpResponse:
        registry = CollectorRegistry()
        registry.register(ClusterHealth())
        return HttpResponse(generate_latest(registry), content_type=CONTENT_TYPE_LATEST)


class ClusterHealth:
    """Collects when asked: the database is the truth, whichever process answers."""

    def collect(self) -> Iterable[Metric]:
        now = counts(database_now())
        jobs = GaugeMetricFamily("foretune_jobs", "Jobs by state.", labels=["state"])
        nodes = GaugeMetricFamily("foretune_nodes", "Nodes by state.", labels=["state"])
        for family, values in ((jobs, now.jobs), (nodes, now.nodes)):
            for state, number in values.items():
                family.add_metric([state], number)
        yield jobs
        yield nodes
        yield GaugeMetricFamily("foretune_queue_length", "Queued jobs.", value=now.jobs[JobState.QUEUED])
        yield GaugeMetricFamily("foretune_gpus", "GPUs of registered nodes.", value=now.gpus)
        yield GaugeMetricFamily("foretune_gpus_free", "GPUs no claim holds.", value=now.gpus - now.gpus_held)
        yield CounterMetricFamily("foretune_ticks", "Passes of the scheduling loop.", value=now.ticks)
        if now.last_tick_at:
            age = (database_now() - now.last_tick_at).total_seconds()
            yield GaugeMetricFamily("foretune_last_tick_age_seconds", "Age of the last pass.", value=age)
        yield from _rooms()
        yield from _stops()
        yield from _quality()
        yield from _promises()


def _rooms() -> Iterable[Metric]:
    now = disk.disk()
    yield GaugeMetricFamily(
        "foretune_disk_bytes", "The portal's part of the disk of DATA_DIR.", value=now.total_bytes
    )
    yield GaugeMetricFamily("foretune_disk_free_bytes", "Of these, free for new work.", value=now.free_bytes)
    stored = GaugeMetricFamily("foretune_stored_bytes", "Bytes of files at the portal.", labels=["kind"])
    for kind, taken in stored_bytes().items():
        stored.add_metric([kind], taken)
    yield stored


def _stops() -> Iterable[Metric]:
    stops = CounterMetricFamily(
        "foretune_preemptions",
        "Stops of running jobs by a policy or an administrator.",
        labels=["policy", "reason"],
    )
    lost = CounterMetricFamily(
        "foretune_preempted_gpu_seconds",
        "GPU-seconds lost to these: work after the last checkpoint, kept GPUs that lay idle, starting again.",
        labels=["policy", "reason"],
    )
    for counted in all_stops():
        stops.add_metric([counted.policy, counted.reason], counted.stops)
        lost.add_metric([counted.policy, counted.reason], counted.lost_gpu_s)
    yield stops
    yield lost
    levels = recent_levels(database_now() - A_DAY)
    if levels.ratio is not None:
        yield GaugeMetricFamily(
            "foretune_topology_reached_ratio",
            "Share of the starts of the last day that reached the level they asked for.",
            value=levels.ratio,
        )


def _quality() -> Iterable[Metric]:
    number, total_s = completions()
    yield SummaryMetricFamily(
        "foretune_jct_seconds",
        "Submission to success, waiting included.",
        count_value=number,
        sum_value=total_s,
    )
    if errors := rate_errors(limit=RECENT_RUNS):
        yield GaugeMetricFamily(
            "foretune_prediction_error_ratio",
            f"Mean relative error of tokens per second over the last {RECENT_RUNS} own runs.",
            value=sum(errors) / len(errors),
        )


def _promises() -> Iterable[Metric]:
    """The nightly judgement of recent runs."""
    drifts = GaugeMetricFamily(
        "foretune_prediction_drift", "1 while promises no longer hold; the predictions page says why."
    )
    drifts.add_metric([], int(bool(drift_alarm())))
    yield drifts
    latest = track_record(days=1)
    if latest and latest[0].coverage is not None:
        yield GaugeMetricFamily(
            "foretune_prediction_coverage_ratio",
            "Share of recent runs inside their 80 % interval, judged once a day.",
            value=latest[0].coverage,
        )
