"""Forms of a node, for administrators."""

from __future__ import annotations

from django import forms

from portal.web.common.form_base import StyledForm
from scheduler.services.nodes.price import MAX_PRICE


class ReasonForm(StyledForm):
    prefix_id = "node"
    reason = forms.CharField(max_length=500, label="Reason", help_text="Shown beside the node's state.")


class DrainForm(ReasonForm):
    move_jobs = forms.TypedChoiceField(
        label="Jobs that run on it",
        choices=[("", "may finish"), ("yes", "move elsewhere, with a checkpoint")],
        coerce=bool,
        empty_value=None,
        required=False,
    )

    def clean_move_jobs(self) -> bool:
        return bool(self.cleaned_data["move_jobs"])


class PriceForm(StyledForm):
    prefix_id = "price"
    price = forms.FloatField(min_value=0, max_value=MAX_PRICE, label="Price of a GPU hour")
    # What the administrator saw: if it is no longer so, someone else was first.
    seen = forms.FloatField(widget=forms.HiddenInput)
