"""A training script, read into the values that it states.

Its files are kept for a while, so that a changed upload is read faster; nothing is run.
"""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.parsers import MultiPartParser
from rest_framework.response import Response

from knowledge.reading.manifest import ScriptManifest, UnreadableUpload, from_upload
from knowledge.reading.reading_json import as_json
from knowledge.reading.recipe_values import taken
from knowledge.script_readings.trees import KeptReading, kept_reading, read_upload, reader_server
from portal.accounts.models import User
from portal.accounts.requests import ApiRequest
from portal.api.common.views import StrictView
from portal.clock import database_now
from portal.limits.bodies import SCRIPTS, takes_files
from scheduler import hints
from scheduler.errors import NotFound
from scheduler.services.provenance.of_script import read_values
from scheduler.services.provenance.sealed import sealed


class ScriptIn(serializers.Serializer[Any]):
    file = serializers.FileField(
        required=False, help_text="A zip or tar.gz of the training's files, or one file of them."
    )
    command = serializers.CharField(required=False, max_length=4_000, help_text="What starts the training.")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if unknown := set(self.initial_data) - set(self.fields):
            raise ValidationError({name: ["is not known here; send file and command"] for name in unknown})
        if not attrs:
            raise ValidationError({"file": ["send a file, a command or both"]})
        return attrs


@takes_files(SCRIPTS)
class ScriptImportsApi(StrictView):
    """Read a training script."""

    parser_classes = (MultiPartParser,)

    @extend_schema(request={"multipart/form-data": ScriptIn}, responses={200: dict[str, Any]})
    def post(self, request: ApiRequest) -> Response:
        """Return what a script, its configuration files and its command state.

        Each value comes with the lines that say so.
        """
        data = ScriptIn(data=request.data)
        data.is_valid(raise_exception=True)
        file = data.validated_data.get("file")
        try:
            manifest = from_upload(file.name or "script", file.read()) if file else ScriptManifest({}, {})
        except UnreadableUpload as refused:
            raise ValidationError({"file": [str(refused)]}) from refused
        command = data.validated_data.get("command", "")
        kept = read_upload(owner=request.user, manifest=manifest, command=command, now=database_now())
        if kept.is_awaited:
            hints.read_scripts()
        return Response(_shown(request.user, kept))


class ScriptImportApi(StrictView):
    """A reading that is kept."""

    @extend_schema(responses={200: dict[str, Any]})
    def get(self, request: ApiRequest, tree_id: int) -> Response:
        """Return a reading of your own again, with what a model has added."""
        kept = kept_reading(owner=request.user, tree_id=tree_id)
        if kept is None:
            raise NotFound("There is no such import of yours.")
        return Response(_shown(request.user, kept))


def _shown(user: User, kept: KeptReading) -> dict[str, Any]:
    server = reader_server(user)
    outcome = {"state": kept.row.model_state or "not asked", "note": kept.row.model_note}
    return {
        "id": kept.row.tree_id,
        "language_model": {"server": server.host if server else None, **outcome},
        **as_json(kept.reading, kept.manifest),
        "reading": sealed(user, read_values(kept.reading, taken(kept.reading), kept.manifest)) or None,
    }
