"""Uploads of the contract: a file in parts of 64 MB at most, in any order."""

from __future__ import annotations

from functools import partial
from typing import Any, BinaryIO, cast

from rest_framework import serializers
from rest_framework.parsers import MultiPartParser
from rest_framework.response import Response

from portal.accounts.requests import ApiRequest
from portal.api.common.fields import StrictSerializer, StrictText, WholeNumber
from portal.clock import database_now
from portal.limits.bodies import PART, takes_files
from portal.openai.files import digest_of, file_object, kept_s, require_purpose, sent_file
from portal.openai.names import PURPOSE, seconds
from portal.openai.repeats import create
from portal.openai.views import OpenAIView
from scheduler.models import Upload, UploadPart
from scheduler.selectors.files import get_upload
from scheduler.services.files.parts import MOST_PARTS, add_part, begin_upload, cancel_upload, complete_upload

MD5, SHA256 = r"^[0-9a-fA-F]{32}$", r"^[0-9a-fA-F]{64}$"


def upload_object(upload: Upload) -> dict[str, Any]:
    return {
        "object": "upload",
        "id": upload.pk,
        "bytes": upload.bytes,
        "created_at": seconds(upload.created_at),
        "expires_at": seconds(upload.expires_at),
        "filename": upload.filename,
        "purpose": PURPOSE,
        "status": upload.state,
        "file": file_object(upload.file) if upload.file else None,
    }


def part_object(part: UploadPart) -> dict[str, Any]:
    return {
        "object": "upload.part",
        "id": part.pk,
        "created_at": seconds(part.created_at),
        "upload_id": part.upload_id,
        "portal": {"bytes": part.bytes, "sha256": part.sha256},
    }


class BeginIn(StrictSerializer):
    bytes = WholeNumber(min_value=1)
    filename = StrictText(max_length=1000)
    mime_type = StrictText(max_length=200, required=False, allow_null=True)
    purpose = StrictText(max_length=100)
    expires_after = serializers.DictField(required=False, allow_null=True)


class CompleteIn(StrictSerializer):
    part_ids = serializers.ListField(child=StrictText(max_length=64), min_length=1, max_length=MOST_PARTS)
    md5 = serializers.RegexField(MD5, required=False, allow_null=True, allow_blank=True)
    sha256 = serializers.RegexField(SHA256, required=False, allow_null=True)


class UploadsView(OpenAIView):
    def post(self, request: ApiRequest) -> Response:
        now = database_now()
        asked = BeginIn(data=request.data)
        asked.is_valid(raise_exception=True)
        values = asked.validated_data
        require_purpose(values["purpose"])
        upload = create(
            request, now=now, load=partial(get_upload, request.user),
            make=lambda creation: begin_upload(
                owner=request.user, filename=values["filename"], size=values["bytes"], now=now,
                keep_s=kept_s(values.get("expires_after")), creation=creation,
            ),
        )  # fmt: skip
        return Response(upload_object(upload))


class UploadView(OpenAIView):
    def get(self, request: ApiRequest, upload_id: str) -> Response:
        """The upload with its parts, so that a client goes on where it stopped."""
        upload = get_upload(request.user, upload_id)
        parts = [part_object(part) for part in upload.parts.all()]
        return Response({**upload_object(upload), "portal": {"parts": parts}})


@takes_files(PART)
class PartsView(OpenAIView):
    parser_classes = [MultiPartParser]

    def post(self, request: ApiRequest, upload_id: str) -> Response:
        now = database_now()
        upload, data = get_upload(request.user, upload_id), sent_file(request, "data")
        part = create(
            request, now=now, load=lambda part_id: upload.parts.get(pk=part_id), body_digest=digest_of(data),
            make=lambda creation: add_part(
                upload=upload, stream=cast(BinaryIO, data.file), now=now, creation=creation
            ),
        )  # fmt: skip
        return Response(part_object(part))


class CompleteView(OpenAIView):
    def post(self, request: ApiRequest, upload_id: str) -> Response:
        """Put the parts together; the digests are checked before anything is stored."""
        now = database_now()
        asked = CompleteIn(data=request.data)
        asked.is_valid(raise_exception=True)
        values = asked.validated_data
        upload = complete_upload(
            upload=get_upload(request.user, upload_id), now=now, part_ids=values["part_ids"],
            md5=values.get("md5") or "", sha256=(values.get("sha256") or "").lower(),
        )  # fmt: skip
        return Response(upload_object(upload))


class CancelUploadView(OpenAIView):
    def post(self, request: ApiRequest, upload_id: str) -> Response:
        now = database_now()
        return Response(upload_object(cancel_upload(upload=get_upload(request.user, upload_id), now=now)))
