"""Training files: upload, list, detail, content, delete."""

from __future__ import annotations

import hashlib
import re
from typing import Any, BinaryIO, cast

from django.core.files.uploadedfile import UploadedFile
from django.db.models import QuerySet
from django.http.response import HttpResponseBase
from django_filters.rest_framework import FilterSet
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.exceptions import ValidationError
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.parsers import MultiPartParser
from rest_framework.response import Response

from portal.accounts.requests import ApiRequest
from portal.api.common.filters import DigestFilter, TextFilter
from portal.api.common.idempotent import KEY, create, created
from portal.api.common.refs import TeamRef, UserRef
from portal.api.common.views import AnyAccept
from portal.api.common.viewsets import Resource
from portal.http.downloads import OCTETS, download
from portal.limits.bodies import TRAINING_DATA, takes_files
from scheduler.errors import BadParameters, NotFound
from scheduler.models import DatasetFile
from scheduler.selectors.files import file_with_content, get_file, visible_files
from scheduler.services.deletions import delete_file
from scheduler.services.files.uploads import path_of, store_file

DIGEST_HEADER, SHA256 = "Content-SHA256", "^[0-9a-fA-F]{64}$"
DIGEST = OpenApiParameter(
    DIGEST_HEADER,
    {"type": "string", "pattern": SHA256},
    OpenApiParameter.HEADER,
    description="SHA-256 of the content, hexadecimal; what arrives must have it.",
)


class FileOut(serializers.ModelSerializer[DatasetFile]):
    owner = UserRef()
    team = TeamRef(allow_null=True)
    expires_at = serializers.DateTimeField(
        allow_null=True, help_text="When it is deleted, once no job needs it any more; null: by people alone."
    )

    class Meta:
        model = DatasetFile
        fields = [
            "id", "filename", "owner", "team", "bytes", "rows", "format", "unused_fields", "sha256",
            "created_at", "expires_at",
        ]  # fmt: skip


class Upload(serializers.Serializer[Any]):
    file = serializers.FileField(
        help_text="JSON Lines or a JSON array: chats, ShareGPT, Alpaca, prompt and completion, or text."
    )


class FileFilter(FilterSet):
    sha256 = DigestFilter(max_length=64, help_text="SHA-256 of the content, hexadecimal.")
    name = TextFilter(field_name="filename", max_length=300, help_text="The whole name.")
    text = TextFilter(
        field_name="filename", lookup_expr="icontains", max_length=300, help_text="A part of the name."
    )


def uploaded(request: ApiRequest, field: str = "file") -> UploadedFile[Any]:
    """Return the one file of a multipart request.

    Raises ValidationError naming the wrong field.
    """
    unknown = {
        name: [f"is not known here; send one field, {field}"] for name in request.data if name != field
    }
    if unknown:
        raise ValidationError(unknown)
    files = request.FILES.getlist(field)
    if len(files) != 1:
        raise ValidationError({field: ["send exactly one file in this multipart field"]})
    file: UploadedFile[Any] = files[0]
    return file


def announced_digest(request: ApiRequest) -> str:
    """The SHA-256 that the header names; empty without it. Raises ValidationError."""
    text = request.headers.get(DIGEST_HEADER)
    if text is not None and not re.fullmatch(SHA256, text):
        raise ValidationError({DIGEST_HEADER: ["must be a SHA-256 of 64 hexadecimal digits"]})
    return (text or "").lower()


def digest_of_upload(upload: UploadedFile[Any]) -> str:
    """SHA-256 of name and content, hexadecimal; the file is left at its beginning."""
    digest = hashlib.sha256((upload.name or "").encode() + b"\0")
    for chunk in upload.chunks():
        digest.update(chunk)
    upload.seek(0)
    return digest.hexdigest()


@takes_files(TRAINING_DATA)
class Files(ListModelMixin, RetrieveModelMixin, Resource):
    """Training data: yours and that of your teams."""

    noun, is_named = "file", False
    about = {"list": "Your files and your teams' files, newest first.", "retrieve": "One file."}
    serializer_class = FileOut
    queryset = DatasetFile.objects.none()
    lookup_url_kwarg = "file_id"
    filterset_class = FileFilter
    parser_classes = [MultiPartParser]
    takes = {"create": Upload}
    tells = {"create": {200: FileOut, 201: FileOut}}
    orders = {"created_at": "created_at", "name": "filename", "bytes": "bytes"}

    def get_queryset(self) -> QuerySet[DatasetFile]:
        return visible_files(self.request.user).select_related("owner", "team")

    def get_object(self) -> DatasetFile:
        return get_file(self.request.user, self.kwargs["file_id"])

    @extend_schema(parameters=[KEY, DIGEST])
    def create(self, request: ApiRequest) -> Response:
        """Upload training data. Refused with the first 20 wrong lines if it is not.

        With the `Content-SHA256` of a file that you or your teams have already the answer is 200 and that
        file; nothing is stored, and no body is needed.
        """
        sha256 = announced_digest(request)
        if sha256 and (file := file_with_content(request.user, sha256)):
            return self.tell(file)
        upload = uploaded(request)
        try:
            stored, new = create(
                request,
                make=lambda creation: store_file(
                    owner=request.user,
                    stream=cast(BinaryIO, upload.file),
                    filename=upload.name or "",
                    now=self.now,
                    sha256=sha256,
                    creation=creation,
                ),
                load=lambda pk: get_file(request.user, pk),
                body_digest=digest_of_upload(upload),
            )
        except BadParameters as wrong:
            raise as_sent(wrong) from wrong
        return created(self.shown(stored), path=f"{request.path}{stored.pk}/", made=new)

    def destroy(self, request: ApiRequest, file_id: str) -> Response:
        """Delete a file (its owner, leads of its team, administrators).

        Refused while a job that has not ended needs it. Jobs that have ended keep its name and
        size.
        """
        delete_file(file=self.get_object(), **self.by)
        return Response(status=204)

    @extend_schema(responses={(200, OCTETS): OpenApiTypes.BINARY, (206, OCTETS): OpenApiTypes.BINARY})
    @action(detail=True, content_negotiation_class=AnyAccept)
    def content(self, request: ApiRequest, file_id: str) -> HttpResponseBase:
        """Download a file, or with `Range` a part of it.

        Its `ETag` is its SHA-256.
        """
        file = self.get_object()
        try:
            return download(request, path_of(file.sha256), sha256=file.sha256, attached_as=file.filename)
        except OSError as lost:
            raise NotFound(f"The content of {file_id} is missing at the portal.") from lost


def as_sent(wrong: BadParameters) -> BadParameters:
    """The error of a digest that came in a header, by the name of that."""
    return BadParameters(
        {DIGEST_HEADER if name == "sha256" else name: text for name, text in wrong.fields.items()}
    )
