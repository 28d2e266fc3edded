"""docs/data-model.md draws every model and every relation between them.

It draws nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from django.apps import apps
from django.db.models import Field, ForeignKey, ManyToManyField, Model

PAGE = (Path(__file__).resolve().parent.parent / "docs" / "data-model.md").read_text()
DRAWN = "\n".join(re.findall(r"```mermaid\n(.*?)```", PAGE, re.DOTALL))


def models() -> list[type[Model]]:
    return [
        model
        for app in ("accounts", "events", "knowledge", "scheduler")
        for model in apps.get_app_config(app).get_models()
    ]


def relations() -> Iterator[str]:
    """Yield the relations as mermaid writes them.

    Many rows of the left refer to one of the right, or to none if null.
    """
    for model in models():
        for field in (*model._meta.fields, *model._meta.many_to_many):
            if field.related_model in models() and (end := _end(field)):
                yield f"{model.__name__} }}o--{end} {field.related_model.__name__} : {field.name}"


def _end(field: Field) -> str:
    if isinstance(field, ForeignKey):
        return "o|" if field.null else "||"
    # One with a model of its own between is drawn by that model's foreign keys.
    is_plain = isinstance(field, ManyToManyField) and field.remote_field.through._meta.auto_created
    return "o{" if is_plain else ""


def test_every_foreign_key_is_drawn_and_no_other() -> None:
    drawn = {line.strip() for line in DRAWN.splitlines() if "--" in line}
    assert drawn == set(relations())


def test_every_model_is_drawn_and_explained() -> None:
    names = {model.__name__ for model in models()}
    assert set(re.findall(r"\b[A-Z][A-Za-z]+\b", DRAWN)) == names
    explained = {
        name
        for line in PAGE.splitlines()
        if line.startswith("| ")
        for name in re.findall(r"`(\w+)`", line.split("|")[1])
    }
    assert explained == names
