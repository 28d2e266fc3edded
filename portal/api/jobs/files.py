"""Training files: upload, list, detail, delete."""

from __future__ import annotations

import hashlib
from functools import partial
from typing import Any, BinaryIO, cast

from django.core.files.uploadedfile import UploadedFile
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.parsers import MultiPartParser
from rest_framework.response import Response

from portal.accounts.requests import ApiRequest
from portal.api.common.idempotent import KEY, create
from portal.api.common.pages import PageQuery, page, page_of
from portal.api.common.views import StrictView
from portal.clock import database_now
from portal.limits.bodies import TRAINING_DATA, takes_files
from scheduler.models import DatasetFile
from scheduler.selectors.files import get_file, visible_files
from scheduler.services.deletions import delete_file
from scheduler.services.files.uploads import store_file


class FileOut(serializers.ModelSerializer[DatasetFile]):
    class Meta:
        model = DatasetFile
        fields = ["id", "filename", "bytes", "rows", "format", "unused_fields", "sha256", "created_at"]


FilePage = page_of(FileOut)


class Upload(serializers.Serializer[Any]):
    file = serializers.FileField(
        help_text="JSON Lines or a JSON array: chats, ShareGPT, Alpaca, prompt and completion, or text."
    )


def uploaded(request: ApiRequest) -> UploadedFile[Any]:
    """Return the one file of a multipart request.

    Raises ValidationError naming the wrong field.
    """
    unknown = {name: ["is not known here; send one field, file"] for name in request.data if name != "file"}
    if unknown:
        raise ValidationError(unknown)
    files = request.FILES.getlist("file")
    if len(files) != 1:
        raise ValidationError({"file": ["send exactly one file in this multipart field"]})
    file: UploadedFile[Any] = files[0]
    return file


def digest_of_upload(upload: UploadedFile[Any]) -> str:
    """SHA-256 of name and content, hexadecimal; the file is left at its beginning."""
    digest = hashlib.sha256((upload.name or "").encode() + b"\0")
    for chunk in upload.chunks():
        digest.update(chunk)
    upload.seek(0)
    return digest.hexdigest()


@takes_files(TRAINING_DATA)
class FilesApi(StrictView):
    query = {"get": PageQuery}
    parser_classes = [MultiPartParser]

    @extend_schema(
        operation_id="files_create",
        parameters=[KEY],
        request={"multipart/form-data": Upload},
        responses={201: FileOut},
    )
    def post(self, request: ApiRequest) -> Response:
        """Upload training data. Refused with the first 20 wrong lines if it is not."""
        upload = uploaded(request)
        stored, _ = create(
            request,
            make=lambda creation: store_file(
                owner=request.user,
                stream=cast(BinaryIO, upload.file),
                filename=upload.name or "",
                now=database_now(),
                creation=creation,
            ),
            load=partial(get_file, request.user),
            body_digest=digest_of_upload(upload),
        )
        return Response(FileOut(stored).data, status=201)

    @extend_schema(operation_id="files_list", responses=FilePage)
    def get(self, request: ApiRequest) -> Response:
        """Your files and your teams' files, newest first."""
        query = self.parameters
        return Response(page(visible_files(request.user), FileOut().to_representation, **query))


class FileApi(StrictView):
    @extend_schema(operation_id="files_retrieve", responses=FileOut)
    def get(self, request: ApiRequest, file_id: str) -> Response:
        """One file."""
        return Response(FileOut(get_file(request.user, file_id)).data)

    @extend_schema(operation_id="files_destroy", request=None, responses={204: None})
    def delete(self, request: ApiRequest, file_id: str) -> Response:
        """Delete a file (its owner, leads of its team, administrators).

        Refused while a job that has not ended needs it. Jobs that have ended keep its name and
        size.
        """
        delete_file(file=get_file(request.user, file_id), actor=request.user, now=database_now())
        return Response(status=204)
