"""A training script, read into the values that it states.

Nothing is stored and nothing is run.
"""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.parsers import MultiPartParser
from rest_framework.response import Response
from rest_framework.views import APIView

from knowledge.reading.manifest import ScriptManifest, UnreadableUpload, from_upload
from knowledge.reading.reader import read
from knowledge.reading.reading_json import as_json
from knowledge.reading.types import Tree
from portal.accounts.requests import ApiRequest
from portal.limits.bodies import SCRIPTS, takes_files


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
class ScriptImportsApi(APIView):
    """Read a training script."""

    parser_classes = (MultiPartParser,)

    @extend_schema(request={"multipart/form-data": ScriptIn}, responses={200: dict[str, Any]})
    def post(self, request: ApiRequest) -> Response:
        """Return what a script, its configuration files and its command state.

        Each value comes with the lines that say so.
        """
        asked = ScriptIn(data=request.data)
        asked.is_valid(raise_exception=True)
        file = asked.validated_data.get("file")
        try:
            manifest = from_upload(file.name or "script", file.read()) if file else ScriptManifest({}, {})
        except UnreadableUpload as refused:
            raise ValidationError({"file": [str(refused)]}) from refused
        reading = read(Tree(manifest.files, asked.validated_data.get("command")))
        return Response(as_json(reading, manifest))
