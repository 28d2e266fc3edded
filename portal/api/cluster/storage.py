"""What takes room on the portal's disk, for administrators."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from portal.accounts.models import User
from portal.accounts.requests import ApiRequest
from portal.api.common.ids import IdField
from portal.api.common.views import AdminApi
from portal.disk import disk, rest_bytes
from scheduler.selectors.analysis.storage import Taker, jobs_by_room, people_by_room, stored_bytes


class DiskOut(serializers.Serializer[Any]):
    total_bytes = serializers.IntegerField()
    free_bytes = serializers.IntegerField(help_text="Free for new work; a reserve does not count.")
    trouble = serializers.CharField(help_text="A sentence from 90 % on; empty below.")


class TakerOut(serializers.Serializer[Any]):
    id: Any = serializers.CharField()
    name = serializers.CharField()
    files_bytes = serializers.IntegerField()
    outputs_bytes = serializers.IntegerField()
    checkpoints_bytes = serializers.IntegerField()


class PersonOut(TakerOut):
    id = IdField(User, source=None)


class StorageReportOut(serializers.Serializer[Any]):
    disk = DiskOut()
    kinds = serializers.DictField(child=serializers.IntegerField(), help_text="Bytes by kind.")
    rest = serializers.DictField(
        child=serializers.IntegerField(), help_text="Bytes of everything else in DATA_DIR, by its name."
    )
    people = PersonOut(many=True)
    jobs = TakerOut(many=True)


class StorageApi(AdminApi):
    @extend_schema(operation_id="storage", responses=StorageReportOut)
    def get(self, request: ApiRequest) -> Response:
        """The disk, what lies on it, and the people and jobs that take the most room."""
        now = disk()
        report = {
            "disk": {"total_bytes": now.total_bytes, "free_bytes": now.free_bytes, "trouble": now.trouble},
            "kinds": stored_bytes(),
            "rest": rest_bytes(),
            "people": [_taker(person) for person in people_by_room()],
            "jobs": [_taker(job) for job in jobs_by_room()],
        }
        return Response(StorageReportOut(report).data)


def _taker(taker: Taker) -> dict[str, Any]:
    return {"id": taker.key, **asdict(taker)}
