"""The catalogue of models and GPUs, and what administrators add to it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar
from urllib.parse import quote

from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.response import Response

from knowledge.catalogue import catalogue_entries
from knowledge.catalogue.hf_config_reading import listed_text
from knowledge.catalogue.portal_catalogue import portal_catalogue
from knowledge.core.domain.catalogue import GIB, GpuModel, Model
from knowledge.models import CatalogEntry
from knowledge.selectors import catalog_entry
from portal.accounts.requests import ApiRequest
from portal.api.common.fields import ChoiceField, Number, SearchText, StrictSerializer, StrictText, Word
from portal.api.common.idempotent import create, created, in_one_transaction
from portal.api.common.ids import LONGEST_NAME
from portal.api.common.pages import NoQuery, list_of
from portal.api.common.viewsets import AdminWrites
from scheduler.errors import NotFound
from scheduler.services.deletions import delete_catalogue_entry


class ModelOut(serializers.Serializer[Model]):
    id = serializers.CharField(source="model_name")
    architecture = serializers.CharField()
    parameters = serializers.IntegerField()
    active_parameters = serializers.IntegerField()
    max_context = serializers.IntegerField(help_text="Tokens of a sample at most; 0: no bound is stated.")


class ModelIn(StrictSerializer):
    name = StrictText(
        max_length=catalogue_entries.LONGEST_MODEL, help_text="The name that jobs use for the model."
    )
    place = StrictText(
        max_length=500, required=False,
        help_text="A model id of the hub, or a folder or config.json below the portal's MODEL_ROOTS.",
    )  # fmt: skip
    config = serializers.DictField(required=False, help_text="The config.json itself, instead of a place.")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if ("place" in attrs) == ("config" in attrs):
            raise ValidationError({"config": ["give either this or a place"]})
        return attrs


class GpuSheet(serializers.Serializer[GpuModel]):
    name = serializers.CharField(source="gpu_model")
    memory_gib = serializers.SerializerMethodField()
    tflops = serializers.SerializerMethodField(help_text="Dense bf16, else fp16; null where it has neither.")
    bandwidth_gb_s = serializers.SerializerMethodField()
    link = Word(catalogue_entries.EVERY_LINK)

    def get_memory_gib(self, gpu: GpuModel) -> float:
        return gpu.memory_bytes / GIB

    def get_tflops(self, gpu: GpuModel) -> float | None:
        peak = gpu.bf16_flops or gpu.fp16_flops
        return peak / 1e12 if peak else None

    def get_bandwidth_gb_s(self, gpu: GpuModel) -> float:
        return gpu.bandwidth_bytes_s / 1e9


class GpuIn(StrictSerializer):
    name = StrictText(max_length=catalogue_entries.LONGEST_GPU, help_text="As nodes report it.")
    memory_gib = Number(help_text="Memory of one GPU.")
    tflops = Number(help_text="Dense bf16 peak, without sparsity.")
    bandwidth_gb_s = Number(help_text="Memory bandwidth.")
    link = ChoiceField(
        choices=catalogue_entries.LINKS, default="pcie4", help_text="Link between the GPUs of a node."
    )


class TextQuery(StrictSerializer):
    text = SearchText(max_length=200, required=False, help_text="A part of the name, in any case.")


class Catalogue(AdminWrites):
    """What the portal knows of a kind, some of it added by administrators."""

    kind: ClassVar[CatalogEntry.Kind]
    facts: ClassVar[type[Model] | type[GpuModel]]
    queryset = CatalogEntry.objects.none()
    lookup_url_kwarg = "name"
    lookup_value_converter = "path"
    pagination_class = None

    def query_class(self, asked: str) -> type[StrictSerializer]:
        return TextQuery if asked == "list" else NoQuery

    def row_to_change(self) -> None:
        """Shipped ones are no rows."""

    def known(self) -> Mapping[str, Any]:
        """All of the kind by name; added ones come first."""
        raise NotImplementedError

    def add(self, **terms: Any) -> CatalogEntry:
        """Add one, or replace an added one."""
        raise NotImplementedError

    def list(self, request: ApiRequest) -> Response:
        text = self.parameters.get("text", "").casefold()
        rows = [row for name, row in self.known().items() if text in name.casefold()]
        return Response({"data": self.get_serializer_class()(rows, many=True).data})

    def retrieve(self, request: ApiRequest, name: str) -> Response:
        if (row := self.known().get(name)) is None:
            raise NotFound(f"There is no {self.noun} {name[:LONGEST_NAME]} in the catalogue.")
        return self.tell(row)

    def create(self, request: ApiRequest) -> Response:
        add = partial(self.add, **self.body(), **self.by)
        entry, new = create(request, make=in_one_transaction(add), load=catalog_entry)
        shown = self.shown(self.facts(**entry.facts))
        return created(shown, path=f"{request.path}{quote(entry.name)}/", made=new)

    def destroy(self, request: ApiRequest, name: str) -> Response:
        delete_catalogue_entry(kind=self.kind, name=name, **self.by)
        return Response(status=204)


class Models(Catalogue):
    noun, kind, facts = "model", CatalogEntry.Kind.MODEL, Model
    about = {
        "list": "Base models whose shape the portal knows; added ones come first.",
        "retrieve": "One base model.",
        "create": "Add a model from its config.json, or replace an added one (administrators).",
        "destroy": "Delete a model that was added (administrators). Refused while jobs that have not ended"
        " train it. Its past executions stay, and teach again once it is added again.",
    }
    serializer_class = ModelOut
    takes = {"create": ModelIn}
    tells = {"list": list_of(ModelOut)}

    def known(self) -> Mapping[str, Model]:
        return {model.model_name: model for model in portal_catalogue().every_model}

    def add(self, *, config: Any = None, place: str = "", **terms: Any) -> CatalogEntry:
        text = json.dumps(config) if config is not None else listed_text(place)
        return catalogue_entries.add_model(text=text, **terms)


class Gpus(Catalogue):
    noun, kind, facts = "GPU", CatalogEntry.Kind.GPU, GpuModel
    about = {
        "list": "GPUs whose data sheet the portal knows; added ones come first.",
        "retrieve": "One GPU.",
        "create": "Add a GPU from four figures of its data sheet, or replace an added one (administrators).",
        "destroy": "Delete a GPU that was added (administrators). Refused while nodes offer it or jobs ask"
        " for it. Past executions on it stay, and teach again once it is added again.",
    }
    serializer_class = GpuSheet
    takes = {"create": GpuIn}
    tells = {"list": list_of(GpuSheet)}

    def known(self) -> Mapping[str, GpuModel]:
        return {gpu.gpu_model: gpu for gpu in portal_catalogue().every_gpu}

    def add(self, **terms: Any) -> CatalogEntry:
        return catalogue_entries.add_gpu(**terms)
