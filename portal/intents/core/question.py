"""The one question.

It is about the model, the training file, then contradictions, then ambiguous dates.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from portal.intents.core.combine import UNTIL, Draft
from portal.intents.core.names.model_index import ModelIndex, Variant
from portal.intents.core.types import Offer, Question, Setting

MOST = 5


def question_of(draft: Draft, setting: Setting, index: ModelIndex) -> Question | None:
    """The first thing that is open, with at most five choices."""
    if "model" not in draft.fields:
        return _model(draft.open.get("model", ()), setting, index)
    if "training_file" not in draft.fields:
        names = draft.open.get("training_file", ()) or tuple(setting.files[:MOST])
        text = "Which file holds the training data?" if names else "Upload the training data first."
        return Question(field="training_file", text=text, choices=_choices("training_file", names))
    for name in sorted(draft.open, key=lambda one: (one == UNTIL, one not in ("epochs", "gpu_model"))):
        if name == "epochs" and isinstance(draft.open[name][0], tuple):
            both = tuple(Offer(field=f, value=v, label=f"{v:g} {_UNIT[f]}") for f, v in draft.open[name])
            return Question(field="epochs", text="Epochs or steps? A job has one of them.", choices=both)
        text = f"Which {_WORDS.get(name, name.replace('_', ' '))} is meant?"
        return Question(field=name, text=text, choices=_choices(name, draft.open[name][:MOST]))
    return None


_UNIT = {"epochs": "epochs", "max_steps": "steps"}
_WORDS = {UNTIL: "deadline", "gpu_model": "GPU model", "lora_r": "rank", "tokens_per_sample": "length"}


def _choices(field: str, values: Sequence[Any]) -> tuple[Offer, ...]:
    return tuple(
        Offer(field=field, value=v, label=f"{v:%a %d %B %Y, %H:%M}" if field == UNTIL else str(v))
        for v in values
    )


def _model(found: Sequence[Any], setting: Setting, index: ModelIndex) -> Question:
    if found and isinstance(found[0], str):
        return Question(field="model", text="Which of these models?", choices=_choices("model", found))
    variants = [v for v in found if isinstance(v, Variant)]
    known = {v.value: v for v in index.variants}
    ran = list(dict.fromkeys(name for name in setting.ran_models if name in known))
    if not variants:
        return Question(field="model", text="Which model?", choices=_choices("model", ran[:MOST]))
    return Question(field="model", text="Which model?", choices=_choices("model", _few(variants, ran)))


def _few(variants: Sequence[Variant], ran: Sequence[str]) -> list[str]:
    """Choose a few of many to ask about; a few are all taken.

    Of many, those that ran here come first, then one of each row, then the others.
    """
    values = list(dict.fromkeys(v.value for v in variants if v.owned))
    values = values or list(dict.fromkeys(v.value for v in variants))
    first = [name for name in ran if name in values]
    rows = {v.row for v in variants}
    own = [value for value in values if value in rows]
    return list(dict.fromkeys([*first, *own, *values]))[:MOST] if len(values) > MOST else values
