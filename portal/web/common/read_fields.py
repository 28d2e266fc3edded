"""Hidden fields of a new job: what was read for it, sealed by the portal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms

from portal.accounts.models import User
from portal.web.common.param_fields import PREFIX, form_value
from scheduler.services.provenance.read_values import ReadValues
from scheduler.services.provenance.sealed import LONGEST, unsealed
from trainer.recipes import PARAMS


def _hidden() -> forms.CharField:
    return forms.CharField(max_length=LONGEST, required=False, widget=forms.HiddenInput)


class ReadFields(forms.Form):
    """The readings of a script and of a sentence, of this the fields that it filled.

    A seal that is too old or somebody else's is left out: it only says where values come from.
    """

    user: User
    read_script = _hidden()
    read_sentence = _hidden()
    read_fields = _hidden()

    @property
    def read(self) -> list[ReadValues]:
        """The values that were read, once the form is valid."""
        script = unsealed(self.user, self.cleaned_data["read_script"])
        sentence = unsealed(self.user, self.cleaned_data["read_sentence"])
        if sentence:
            filled = self.cleaned_data["read_fields"].split(",")
            sentence = sentence.only(name.removeprefix(PREFIX) for name in filled)
        return [one for one in (script, sentence) if one and one.values]


def as_fields(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values by the names of a submission as a form holds them."""
    params = PARAMS
    return {PREFIX + name if name in params else name: form_value(value) for name, value in values.items()}
