"""Added GPUs keep the data sheet's rate of their link, as shipped ones do; before, what a ring makes of it."""

from typing import Any

from django.db import migrations

SHEET_BYTES_S = {
    "nvlink2": 150e9,
    "nvlink3": 300e9,
    "nvlink4": 450e9,
    "nvlink5": 900e9,
    "nvlink5-rack": 900e9,
    "xgmi": 448e9,
    "roce": 300e9,
    "pcie3": 15.75e9,
    "pcie4": 31.5e9,
    "pcie5": 63e9,
}


def state_the_sheet(apps: Any, schema_editor: Any) -> None:
    del schema_editor
    for entry in apps.get_model("knowledge", "CatalogEntry").objects.filter(kind="gpu"):
        link = entry.facts.get("link")
        if link in SHEET_BYTES_S:
            entry.facts["link_bytes_s"] = SHEET_BYTES_S[link]
            entry.save(update_fields=["facts"])


class Migration(migrations.Migration):
    dependencies = [("knowledge", "0006_reentrant_checkpointing")]

    operations = [migrations.RunPython(state_the_sheet, migrations.RunPython.noop)]
