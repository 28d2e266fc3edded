"""GPUs that were added before links were stated as on data sheets."""

from __future__ import annotations

from importlib import import_module

import pytest
from django.apps import apps
from django.utils import timezone

from knowledge.catalogue.catalogue_entries import add_gpu
from knowledge.models import CatalogEntry

migration = import_module("knowledge.migrations.0007_link_of_added_gpus")
pytestmark = [pytest.mark.django_db, pytest.mark.two_databases]


def test_an_added_gpu_gets_the_link_of_its_data_sheet() -> None:
    add_gpu(
        name="Aurora-1", memory_gib=48, tflops=200, bandwidth_gb_s=900, link="nvlink3", now=timezone.now()
    )
    entry = CatalogEntry.objects.get(name="Aurora-1")
    stated = entry.facts["link_bytes_s"]
    entry.facts["link_bytes_s"] = 230e9
    entry.save()
    migration.state_the_sheet(apps, None)
    assert CatalogEntry.objects.get(name="Aurora-1").facts["link_bytes_s"] == stated == 300e9
