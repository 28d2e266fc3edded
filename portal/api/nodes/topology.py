"""Where the GPUs of a node sit, who holds them, and how close free ones lie."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from portal.accounts.models import User
from portal.api.common.fields import Word
from scheduler.core.job_terms import JOB_TERMS
from scheduler.models import Node
from scheduler.selectors.cluster.topology import picture_of
from scheduler.selectors.jobs import visible_jobs

LEVELS = JOB_TERMS["topology_level"].choices


class SiteOut(serializers.Serializer[Any]):
    """Numbers of groups within the node; nvlink null: it has no such link."""

    index = serializers.IntegerField()
    uuid = serializers.CharField(help_text="Empty for CPU slots.")
    socket = serializers.IntegerField()
    numa = serializers.IntegerField()
    switch = serializers.IntegerField()
    nvlink = serializers.IntegerField(allow_null=True)
    busy = serializers.BooleanField()
    job = serializers.CharField(allow_null=True, help_text="Null also where you may not see the job.")


class FreeOut(serializers.Serializer[Any]):
    gpus = serializers.IntegerField()
    level = Word(LEVELS, allow_null=True, help_text="Null: fewer are free.")


class TopologyOut(serializers.Serializer[Any]):
    declared = serializers.BooleanField(help_text="By its owner; else its driver says so.")
    warning = serializers.CharField(help_text="What is wrong with it, and the remedy; empty if nothing is.")
    gpus = SiteOut(many=True, help_text="Empty where it is unknown where they sit.")
    free = FreeOut(many=True, help_text="How close 1, 2, 4 and 8 free GPUs can lie.")


def topology_told(node: Node, asker: User) -> Any:
    """Of the jobs that hold GPUs those are named that the asker may see."""
    picture = picture_of(node)
    placed = picture.gpus if picture else ()
    jobs = [gpu.job.pk for gpu in placed if gpu.job]
    visible = set(visible_jobs(asker).filter(pk__in=jobs).values_list("pk", flat=True))
    shown = {
        "declared": node.topology_declared,
        "warning": node.topology_warning,
        "gpus": [
            {
                "index": one.gpu.index,
                "uuid": one.gpu.uuid,
                **one.site._asdict(),
                "busy": one.job is not None,
                "job": one.job.pk if one.job and one.job.pk in visible else None,
            }
            for one in placed
        ],
        "free": [
            {"gpus": free.gpus, "level": free.level.word if free.level else None}
            for free in (picture.free if picture else ())
        ],
    }
    return TopologyOut(shown).data
