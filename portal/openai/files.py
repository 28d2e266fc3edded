"""Files of the contract: training data, and figures of jobs that succeeded."""

from __future__ import annotations

import hashlib
from datetime import datetime, timedelta
from functools import partial
from typing import Any, BinaryIO, cast

from django.core.files.uploadedfile import UploadedFile
from django.http import HttpResponse, QueryDict
from django.http.response import HttpResponseBase
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.parsers import MultiPartParser
from rest_framework.response import Response

from portal.accounts.models import User
from portal.accounts.requests import ApiRequest
from portal.api.common.fields import ChoiceField, WrittenNumber
from portal.clock import database_now
from portal.http.downloads import OCTETS, download
from portal.limits.bodies import TRAINING_DATA, takes_files
from portal.openai.errors import NotHere, Refused
from portal.openai.history import METRIC_NAMES
from portal.openai.names import PURPOSE, RESULTS, job_of_result, result_id, seconds
from portal.openai.pages import ListQuery, Source, listed
from portal.openai.repeats import create
from portal.openai.views import OpenAIView
from scheduler.models import Artifact, DatasetFile
from scheduler.models.ids import is_id_like, new_file_id
from scheduler.selectors.files import ever_visible_files, get_file, visible_files
from scheduler.selectors.results import STEPS, StepsFile, visible_results
from scheduler.services.deletions import delete_file
from scheduler.services.files.uploads import path_of, store_file
from scheduler.services.jobs.kept_checkpoints import delete_outputs

MOST_FILES = 10_000
SHORTEST_S, LONGEST_S = 3600, 2_592_000  # that a file may be kept for, where its sender says so


def file_object(file: DatasetFile) -> dict[str, Any]:
    return {
        "object": "file",
        "id": file.pk,
        "bytes": file.bytes,
        "created_at": seconds(file.created_at),
        "expires_at": seconds(file.expires_at),
        "filename": file.filename,
        "purpose": PURPOSE,
        "status": "processed",  # what is no training data is refused when it arrives
        "status_details": None,
        "portal": {
            "rows": file.rows,
            "format": file.format,
            "unused_fields": file.unused_fields,
            "sha256": file.sha256,
        },
    }


def result_object(result: Artifact) -> dict[str, Any]:
    try:
        size, status = steps_of(result).size, "processed"
    except OSError:
        size, status = result.bytes, "error"
    return {
        "object": "file",
        "id": result_id(result.job_id),
        "bytes": size,
        "created_at": seconds(result.at),
        "expires_at": None,
        "filename": "step_metrics.csv",
        "purpose": RESULTS,
        "status": status,
        "status_details": None if status == "processed" else "The portal has lost its content.",
    }


def steps_of(result: Artifact) -> StepsFile:
    return StepsFile.of(result, METRIC_NAMES)


def get_result(user: User, job_id: str, file_id: str) -> Artifact:
    """The figures of a job. Raises NotHere."""
    found = visible_results(user).filter(job=job_id).first()
    if found is None:
        raise NotHere(f"There is no file {file_id}.")
    return found


class FilesQuery(ListQuery):
    limit = WrittenNumber(required=False, min_value=1, max_value=MOST_FILES, default=MOST_FILES)
    order = ChoiceField(choices=["asc", "desc"], required=False, default="desc")
    purpose = serializers.CharField(required=False, max_length=64)


@takes_files(TRAINING_DATA)
class FilesView(OpenAIView):
    parser_classes = [MultiPartParser]
    query = {"get": FilesQuery}

    def post(self, request: ApiRequest) -> Response:
        """Upload training data; refused with its wrong lines if it is none."""
        now = database_now()
        upload, keep_s = sent_file(request, "file"), sent_purpose_and_end(request)
        stored = create(
            request, now=now, load=partial(get_file, request.user), body_digest=digest_of(upload, keep_s),
            make=lambda creation: store_file(
                owner=request.user, stream=cast(BinaryIO, upload.file), filename=upload.name or "", now=now,
                expires_at=_end(now, keep_s), creation=creation,
            ),
        )  # fmt: skip
        return Response(file_object(stored))

    def get(self, request: ApiRequest) -> Response:
        """Files that one sees, newest first unless `order` says otherwise."""
        asked = self.parameters
        user, sources = request.user, list[Source[Any]]()
        wanted = asked.get("purpose", "")
        if wanted in ("", PURPOSE):
            former = ever_visible_files(user)
            sources.append(Source(visible_files(user), "created_at", file_key, file_object, former))
        if wanted in ("", RESULTS):
            results = visible_results(user)
            sources.append(Source(results, "at", lambda one: _artifact_key(user, one), result_object))
        found = listed(
            *sources, after=asked.get("after"), limit=asked["limit"], oldest_first=asked["order"] == "asc"
        )
        return Response(found)


class FileView(OpenAIView):
    def get(self, request: ApiRequest, file_id: str) -> Response:
        if job_id := job_of_result(file_id):
            return Response(result_object(get_result(request.user, job_id, file_id)))
        return Response(file_object(get_file(request.user, file_id)))

    def delete(self, request: ApiRequest, file_id: str) -> Response:
        """Delete a file; refused while a job that has not ended needs it."""
        now = database_now()
        if job_id := job_of_result(file_id):
            job = get_result(request.user, job_id, file_id).job
            delete_outputs(job=job, actor=request.user, now=now, path=STEPS)
        else:
            delete_file(file=get_file(request.user, file_id), actor=request.user, now=now)
        return Response({"object": "file", "id": file_id, "deleted": True})


class ContentView(OpenAIView):
    def get(self, request: ApiRequest, file_id: str) -> HttpResponseBase:
        """The bytes of a file, or with `Range` a part of training data."""
        try:
            if job_id := job_of_result(file_id):
                content = steps_of(get_result(request.user, job_id, file_id)).content()
                return HttpResponse(content, content_type=OCTETS)
            file = get_file(request.user, file_id)
            return download(request, path_of(file.sha256), sha256=file.sha256, attached_as=file.filename)
        except OSError as lost:
            raise NotHere(f"The content of {file_id} is missing at the portal.") from lost


def file_key(public_id: str) -> str | None:
    return public_id if is_id_like(public_id, new_file_id()) else None


def _artifact_key(user: User, public_id: str) -> int | None:
    job_id = job_of_result(public_id)
    return visible_results(user).filter(job=job_id).values_list("pk", flat=True).first() if job_id else None


def sent_file(request: ApiRequest, field: str) -> UploadedFile[Any]:
    """The one file of a multipart request. Raises ValidationError."""
    files = request.FILES.getlist(field)
    if len(files) != 1:
        raise ValidationError({field: "is required: send exactly one file in this multipart field"})
    file: UploadedFile[Any] = files[0]
    return file


def sent_purpose_and_end(request: ApiRequest) -> int | None:
    """The seconds for which the file is kept; None: until it is deleted.

    Raises Refused, ValidationError.
    """
    known = {"file", "purpose", "expires_after[anchor]", "expires_after[seconds]"}
    if unknown := {name: f"is not known here; known are {', '.join(sorted(known))}" for name in request.data
                   if name not in known}:  # fmt: skip
        raise ValidationError(unknown)
    sent = cast(QueryDict, request.data)
    require_purpose(sent.get("purpose"))
    after: dict[str, Any] = {"anchor": sent.get("expires_after[anchor]")}
    if (text := sent.get("expires_after[seconds]")) is not None:
        after["seconds"] = WrittenNumber().run_validation(text)
    return kept_s(after if any(value is not None for value in after.values()) else None)


def require_purpose(purpose: Any) -> None:
    if purpose is None:
        raise ValidationError({"purpose": f"is required; send {PURPOSE}"})
    if purpose != PURPOSE:
        raise Refused(
            f"purpose: this portal trains, so it takes files for {PURPOSE}, not for {str(purpose)[:50]}.",
            param="purpose", code="invalid_value",
        )  # fmt: skip


def kept_s(after: dict[str, Any] | None) -> int | None:
    """The seconds of `expires_after`. Raises ValidationError."""
    if after is None:
        return None
    if after.get("anchor") != "created_at":
        raise ValidationError({"expires_after.anchor": "must be created_at"})
    found = after.get("seconds")
    if not isinstance(found, int) or isinstance(found, bool) or not SHORTEST_S <= found <= LONGEST_S:
        raise ValidationError(
            {"expires_after.seconds": f"must be a whole number between {SHORTEST_S:,} and {LONGEST_S:,}"}
        )
    return found


def digest_of(upload: UploadedFile[Any], *others: object) -> str:
    """SHA-256 of the name, the content and what else was sent.

    The file is left at its beginning.
    """
    digest = hashlib.sha256(repr((upload.name, *others)).encode())
    for chunk in upload.chunks():
        digest.update(chunk)
    upload.seek(0)
    return digest.hexdigest()


def _end(now: datetime, keep_s: int | None) -> datetime | None:
    return None if keep_s is None else now + timedelta(seconds=keep_s)
