"""Forms of a node, for administrators."""

from __future__ import annotations

from django import forms

from portal.web.common.currency import in_currency
from portal.web.common.form_base import StyledForm
from portal.web.common.number_fields import NumberField
from scheduler.services.nodes.price import MAX_PRICE


class ReasonForm(StyledForm):
    prefix_id = "node"
    reason = forms.CharField(
        max_length=500, label="Reason", help_text="Required; shown with the node's state."
    )


class DrainForm(ReasonForm):
    move_jobs = forms.TypedChoiceField(
        label="Running jobs",
        choices=[("", "let them finish"), ("yes", "move them elsewhere, with a checkpoint")],
        coerce=bool,
        empty_value=None,
        required=False,
    )

    def clean_move_jobs(self) -> bool:
        return bool(self.cleaned_data["move_jobs"])


class ResumeForm(ReasonForm):
    """Of a node that reports other GPUs than it joined with."""

    take_over_gpus = forms.TypedChoiceField(
        label="GPUs",
        choices=[("", "as it joined"), ("yes", "those that it reports now")],
        coerce=bool,
        empty_value=None,
        required=False,
    )

    def clean_take_over_gpus(self) -> bool:
        return bool(self.cleaned_data["take_over_gpus"])


class PriceForm(StyledForm):
    prefix_id = "price"
    price = NumberField(min_value=0, max_value=MAX_PRICE, label="Price per GPU hour", help_text=in_currency)
    # The state that the administrator saw: if it is no longer so, someone else was first.
    seen = NumberField(widget=forms.HiddenInput)
