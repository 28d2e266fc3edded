"""Forms for entries of the catalogue.

A GPU is entered in a short form, a model by its config.json.
"""

from __future__ import annotations

from datetime import datetime

from django import forms

from knowledge.catalogue import catalogue_entries
from knowledge.catalogue.hf_config_reading import LARGEST_CONFIG, CannotAdd, listed_text
from knowledge.models import CatalogEntry
from portal.accounts.models import User
from portal.web.common.form_base import StyledForm
from portal.web.common.number_fields import NumberField


class GpuForm(StyledForm):
    prefix_id = "gpu"
    name = forms.CharField(
        max_length=catalogue_entries.LONGEST_GPU, help_text="Exactly as the node reports it."
    )
    memory_gib = NumberField(label="Memory", help_text="GiB per GPU.")
    tflops = NumberField(label="Peak", help_text="Dense bf16 TFLOP/s, without sparsity.")
    bandwidth_gb_s = NumberField(label="Memory bandwidth", help_text="GB/s.")
    link = forms.ChoiceField(
        choices=[(link, link) for link in catalogue_entries.LINKS],
        initial="pcie4",
        help_text="Between the GPUs of a node.",
    )

    def add(self, actor: User, now: datetime) -> CatalogEntry:
        """Store what was filled in. Raises CannotAdd."""
        return catalogue_entries.add_gpu(**self.cleaned_data, actor=actor, now=now)


class ModelForm(StyledForm):
    prefix_id = "model"
    name = forms.CharField(
        max_length=catalogue_entries.LONGEST_MODEL, help_text="The name that jobs use for the model."
    )
    place = forms.CharField(
        max_length=500, required=False, label="Location of its config.json",
        help_text="A Hugging Face model id, or a folder or file below the portal's MODEL_ROOTS.",
    )  # fmt: skip
    config = forms.CharField(
        max_length=LARGEST_CONFIG, required=False, label="or the config.json itself",
        widget=forms.Textarea(attrs={"rows": 4, "spellcheck": "false"}),
    )  # fmt: skip

    def add(self, actor: User, now: datetime) -> CatalogEntry:
        """Store what was filled in. Raises CannotAdd."""
        place, text = self.cleaned_data["place"], self.cleaned_data["config"]
        if bool(place) == bool(text):
            raise CannotAdd({"place": "Give either a location or the config.json itself."})
        return catalogue_entries.add_model(
            text=text or listed_text(place), name=self.cleaned_data["name"], actor=actor, now=now
        )
