"""Uploads: a file in parts of 64 MB at most, in any order, within a day."""

from __future__ import annotations

from typing import Any, BinaryIO, cast

from django.db.models import QuerySet
from django_filters.rest_framework import FilterSet
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.parsers import MultiPartParser
from rest_framework.response import Response

from portal.accounts.requests import ApiRequest
from portal.api.common.fields import StrictSerializer, StrictText, WholeNumber
from portal.api.common.filters import DigestFilter, WordFilter
from portal.api.common.idempotent import KEY, create, created
from portal.api.common.viewsets import Resource
from portal.api.jobs.files import (
    DIGEST,
    SHA256,
    FileOut,
    announced_digest,
    digest_of_upload,
    uploaded,
)
from portal.limits.bodies import PART, takes_files
from scheduler.models import Upload, UploadPart
from scheduler.selectors.files import get_upload, own_uploads
from scheduler.services.files.parts import MOST_PARTS, add_part, begin_upload, cancel_upload, complete_upload


class PartOut(serializers.ModelSerializer[UploadPart]):
    class Meta:
        model = UploadPart
        fields = ["id", "bytes", "sha256", "created_at"]


class UploadBrief(serializers.ModelSerializer[Upload]):
    sha256 = serializers.CharField(help_text="Of the whole, as it was announced; empty: it was not.")
    file = FileOut(allow_null=True, help_text="What became of it, once it is complete.")
    expires_at = serializers.DateTimeField(help_text="When it ends unless it is complete.")

    class Meta:
        model = Upload
        fields = ["id", "filename", "bytes", "sha256", "state", "created_at", "expires_at", "file"]


class UploadOut(UploadBrief):
    parts = PartOut(many=True, help_text="What has arrived, the first first.")

    class Meta(UploadBrief.Meta):
        fields = [*UploadBrief.Meta.fields, "parts"]


class Digest(serializers.RegexField):
    """A SHA-256, as digests are kept."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(SHA256, **kwargs)

    def to_internal_value(self, data: Any) -> str:
        return super().to_internal_value(data).lower()


class UploadIn(StrictSerializer):
    filename = StrictText(max_length=1000)
    bytes = WholeNumber(min_value=1, help_text="Of the whole.")
    sha256 = Digest(required=False, help_text="Of the whole, hexadecimal; it is checked at the end.")


class PartIn(serializers.Serializer[Any]):
    data = serializers.FileField(  # type: ignore[assignment]  # DRF's own property of that name
        help_text="At most 64 MB (67,108,864 bytes) of the file."
    )


class CompleteIn(StrictSerializer):
    part_ids = serializers.ListField(
        child=StrictText(max_length=64),
        min_length=1,
        max_length=MOST_PARTS,
        help_text="All parts, in the order of the file.",
    )
    sha256 = Digest(required=False, help_text="Of the whole, hexadecimal.")


class UploadFilter(FilterSet):
    state = WordFilter(Upload.State.values, help_text="One of them.")
    sha256 = DigestFilter(max_length=64, help_text="Of the whole, as it was announced.")


@takes_files(PART)
class Uploads(ListModelMixin, RetrieveModelMixin, Resource):
    """Files that come in parts: begun, sent, and put together."""

    noun, is_named = "upload of yours", False
    about = {
        "list": "Your uploads, newest first.",
        "retrieve": "One upload with its parts, so that a program goes on where it stopped.",
    }
    serializer_class = UploadOut
    queryset = Upload.objects.none()
    lookup_url_kwarg = "upload_id"
    filterset_class = UploadFilter
    takes = {"create": UploadIn, "add_part": PartIn, "complete": CompleteIn}
    tells = {"list": UploadBrief, "add_part": {201: PartOut}}

    def get_queryset(self) -> QuerySet[Upload]:
        return own_uploads(self.request.user)

    def get_object(self) -> Upload:
        return get_upload(self.request.user, self.kwargs["upload_id"])

    def create(self, request: ApiRequest) -> Response:
        """Begin an upload, which holds its bytes of your quota for a day."""
        values = self.body()
        upload, new = create(
            request,
            make=lambda creation: begin_upload(
                owner=request.user,
                filename=values["filename"],
                size=values["bytes"],
                sha256=values.get("sha256", ""),
                now=self.now,
                creation=creation,
            ),
            load=lambda pk: get_upload(request.user, pk),
        )
        return created(self.shown(upload), path=f"{request.path}{upload.pk}/", made=new)

    def destroy(self, request: ApiRequest, upload_id: str) -> Response:
        """Cancel an upload; what has arrived of it goes."""
        cancel_upload(upload=self.get_object(), now=self.now)
        return Response(status=204)

    @extend_schema(parameters=[KEY, DIGEST])
    @action(detail=True, methods=["post"], url_path="parts", parser_classes=[MultiPartParser])
    def add_part(self, request: ApiRequest, upload_id: str) -> Response:
        """Send a part of at most 64 MB; their order is told at the end."""
        upload, sha256, sent = self.get_object(), announced_digest(request), uploaded(request, "data")
        part, new = create(
            request,
            make=lambda creation: add_part(
                upload=upload,
                stream=cast(BinaryIO, sent.file),
                sha256=sha256,
                now=self.now,
                creation=creation,
            ),
            load=lambda pk: upload.parts.get(pk=pk),
            body_digest=digest_of_upload(sent),
        )
        return created(PartOut(part).data, path=request.path.removesuffix("parts/"), made=new)

    @action(detail=True, methods=["post"])
    def complete(self, request: ApiRequest, upload_id: str) -> Response:
        """Put the parts together, check them, and store the file.

        Again with the same parts it changes nothing. After a refusal parts can be sent again.
        """
        values = self.body()
        upload = complete_upload(upload=self.get_object(), now=self.now, **values)
        return self.tell(get_upload(request.user, upload.pk))
