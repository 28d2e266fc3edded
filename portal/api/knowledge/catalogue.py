"""The catalogue of models and GPUs, and what administrators add to it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, TypeVar

from drf_spectacular.utils import extend_schema
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
from portal.api.common.idempotent import KEY, create, in_one_transaction
from portal.api.common.pages import list_of
from portal.api.common.views import AdminApi, AdminWritesApi
from portal.clock import database_now
from scheduler.services.deletions import delete_catalogue_entry

Row = TypeVar("Row")


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
    link = Word(catalogue_entries.LINKS)

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


def _named(text: str, rows: Iterable[Row], name: Callable[[Row], str]) -> list[Row]:
    return [row for row in rows if text.casefold() in name(row).casefold()]


class ModelsApi(AdminWritesApi):
    query = {"get": TextQuery}

    @extend_schema(operation_id="models_list", responses=list_of(ModelOut))
    def get(self, request: ApiRequest) -> Response:
        """Base models whose shape the portal knows; added ones come first."""
        text = self.parameters.get("text", "")
        models = _named(text, portal_catalogue().every_model, lambda model: model.model_name)
        return Response({"data": [ModelOut(model).data for model in models]})

    @extend_schema(operation_id="models_create", parameters=[KEY], request=ModelIn, responses={201: ModelOut})
    def post(self, request: ApiRequest) -> Response:
        """Add a model from its config.json, or replace an added one (administrators)."""
        body = ModelIn(data=request.data)
        body.is_valid(raise_exception=True)
        name, place, config = (body.validated_data.get(key) for key in ("name", "place", "config"))
        text = json.dumps(config) if config is not None else listed_text(place)
        add = partial(
            catalogue_entries.add_model, name=name, text=text, actor=request.user, now=database_now()
        )
        entry, _ = create(request, make=in_one_transaction(add), load=catalog_entry)
        return Response(ModelOut(Model(**entry.facts)).data, status=201)


class GpusApi(AdminWritesApi):
    query = {"get": TextQuery}

    @extend_schema(operation_id="gpus_list", responses=list_of(GpuSheet))
    def get(self, request: ApiRequest) -> Response:
        """GPUs whose data sheet the portal knows; added ones come first."""
        text = self.parameters.get("text", "")
        gpus = _named(text, portal_catalogue().every_gpu, lambda gpu: gpu.gpu_model)
        return Response({"data": [GpuSheet(gpu).data for gpu in gpus]})

    @extend_schema(operation_id="gpus_create", parameters=[KEY], request=GpuIn, responses={201: GpuSheet})
    def post(self, request: ApiRequest) -> Response:
        """Add a GPU from four figures of its data sheet, or replace an added one.

        For administrators.
        """
        body = GpuIn(data=request.data)
        body.is_valid(raise_exception=True)
        add = partial(
            catalogue_entries.add_gpu, **body.validated_data, actor=request.user, now=database_now()
        )
        entry, _ = create(request, make=in_one_transaction(add), load=catalog_entry)
        return Response(GpuSheet(GpuModel(**entry.facts)).data, status=201)


class _EntryApi(AdminApi):
    kind: CatalogEntry.Kind

    def _delete(self, request: ApiRequest, name: str) -> Response:
        delete_catalogue_entry(kind=self.kind, name=name, actor=request.user, now=database_now())
        return Response(status=204)


class ModelApi(_EntryApi):
    kind = CatalogEntry.Kind.MODEL

    @extend_schema(operation_id="models_destroy", request=None, responses={204: None})
    def delete(self, request: ApiRequest, name: str) -> Response:
        """Delete a model that was added (administrators).

        Refused while jobs that have not ended train it. Its past executions stay, and teach again
        once it is added again.
        """
        return self._delete(request, name)


class GpuApi(_EntryApi):
    kind = CatalogEntry.Kind.GPU

    @extend_schema(operation_id="gpus_destroy", request=None, responses={204: None})
    def delete(self, request: ApiRequest, name: str) -> Response:
        """Delete a GPU that was added (administrators).

        Refused while nodes offer it or jobs ask for it. Past executions on it stay, and teach again
        once it is added again.
        """
        return self._delete(request, name)
