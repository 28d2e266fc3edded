"""What programs of the last release could break with, found in the OpenAPI document.

`python -m tests.released_api` keeps the present document as that of a release.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Schema = Mapping[str, Any]
ROOT = Path(__file__).resolve().parent.parent
KEPT = ROOT / "docs" / "released-api.json"
CHANGELOG = ROOT / "CHANGELOG.md"
GAP = re.compile(r"\{\w+\}")
# What says nothing about what is sent and told.
TEXTS = (
    "description",
    "summary",
    "tags",
    "examples",
    "example",
    "title",
    "operationId",
    "security",
    "default",
)
VERBS = ("get", "post", "put", "patch", "delete")


@dataclass(frozen=True)
class Break:
    """`what` became of a `field` of an `operation`; without a field: of the operation itself."""

    operation: str
    field: str
    what: str

    def __str__(self) -> str:
        return f"`{self.operation}`: {f'`{self.field}` ' if self.field else ''}{self.what}"

    def is_told(self, changelog: str) -> bool:
        """Does a line of the changelog name it?"""
        names = [f"`{name}`" for name in (self.operation, self.field) if name]
        return any(all(name in line for name in names) for line in changelog.splitlines())


@dataclass
class Comparison:
    """Two documents; an object of the old one that is `deprecated` may go.

    Of what several operations have in common the first one is told.
    """

    old: Schema
    new: Schema
    operation: str = ""
    seen: set[tuple[str, str, bool]] = field(default_factory=set)

    def breaks(self) -> Iterator[Break]:
        for address, before in self.old["paths"].items():
            for verb in (verb for verb in VERBS if verb in before):
                self.operation = f"{verb.upper()} {GAP.sub('ID', address.removeprefix('/api/'))}"
                after = self.new["paths"].get(address, {}).get(verb)
                if after is not None:
                    yield from self._of_operation(before[verb], after)
                elif not before[verb].get("deprecated"):
                    yield self._broken("", "is gone")

    def _broken(self, name: str, what: str) -> Break:
        return Break(self.operation, name.removeprefix("."), what)

    def _of_operation(self, old: Schema, new: Schema) -> Iterator[Break]:
        before, after = _parameters(old), _parameters(new)
        for name, parameter in before.items():
            if name in after:
                yield from self._of_values(name, parameter["schema"], after[name]["schema"], told=False)
            elif not parameter.get("deprecated"):
                yield self._broken(name, "is taken no longer")
        for name, parameter in after.items():
            if parameter.get("required") and not before.get(name, {}).get("required"):
                yield self._broken(name, "has to be given")
        if "requestBody" in old:
            yield from self._of_contents(old["requestBody"], new.get("requestBody", {}), told=False)
        elif new.get("requestBody", {}).get("required"):
            yield self._broken("", "has to have a body")
        for status in old["responses"]:
            if status not in new["responses"]:
                yield self._broken("", f"is answered with {status} no longer")
            else:
                answers = old["responses"][status], new["responses"][status]
                yield from self._of_contents(*answers, told=True)

    def _of_contents(self, old: Schema, new: Schema, *, told: bool) -> Iterator[Break]:
        for kind, content in old.get("content", {}).items():
            if kind not in new.get("content", {}):
                yield self._broken("", f"{'tells' if told else 'takes'} {kind} no longer")
            else:
                yield from self._of_values("", content["schema"], new["content"][kind]["schema"], told=told)

    def _of_values(self, name: str, old: Schema, new: Schema, *, told: bool) -> Iterator[Break]:
        """told: values of an answer, which may become fewer; those of a request may become more."""
        refs = _ref(old), _ref(new)
        known = (*refs, told) in self.seen  # what is around the reference is not
        if all(refs):
            self.seen.add((*refs, told))
        old, new = _whole(self.old, old), _whole(self.new, new)
        wide, narrow = (_types(new), _types(old)) if told else (_types(old), _types(new))
        if narrow and (lost := wide - narrow or ({"anything"} if not wide else set())):
            words = ", ".join(sorted(lost))
            yield self._broken(name, f"may be {words} {'now' if told else 'no longer'}")
            return
        if known:
            return
        if not told and "enum" in new:
            gone = {*map(str, old.get("enum", ["other values"]))} - {*map(str, new["enum"])}
            if gone:
                yield self._broken(name, f"may be {', '.join(sorted(gone))} no longer")
        yield from self._of_fields(name, old, new, told=told)
        for inner in ("items", "additionalProperties"):
            if isinstance(old.get(inner), Mapping) and isinstance(new.get(inner), Mapping):
                yield from self._of_values(f"{name}[]", old[inner], new[inner], told=told)

    def _of_fields(self, name: str, old: Schema, new: Schema, *, told: bool) -> Iterator[Break]:
        before, after = old.get("properties", {}), new.get("properties", {})
        for key, value in before.items():
            if key in after:
                yield from self._of_values(f"{name}.{key}", value, after[key], told=told)
            elif not value.get("deprecated"):
                yield self._broken(f"{name}.{key}", f"is {'told' if told else 'taken'} no longer")
        required, needed = {*old.get("required", ())}, {*new.get("required", ())}
        for key in sorted((required & {*after}) - needed if told else needed - required):
            yield self._broken(f"{name}.{key}", "may be missing now" if told else "has to be given")


def _parameters(operation: Schema) -> dict[str, Any]:
    """Those of the address and of headers; its gaps are in its path."""
    return {one["name"]: one for one in operation.get("parameters", ()) if one["in"] != "path"}


def _ref(schema: Schema) -> str:
    """The component that it refers to; empty if that is none, or several."""
    refs = [schema, *schema.get("allOf", ()), *schema.get("oneOf", ()), *schema.get("anyOf", ())]
    found = [one["$ref"] for one in refs if "$ref" in one]
    return str(found[0]) if len(found) == 1 else ""


def _whole(document: Schema, schema: Schema) -> Schema:
    """The schema without references and unions at its top."""
    if "$ref" in schema:
        return _whole(document, document["components"]["schemas"][schema["$ref"].rpartition("/")[2]])
    whole = dict(schema)
    for part in (*schema.get("allOf", ()), *schema.get("oneOf", ()), *schema.get("anyOf", ())):
        inner = _whole(document, part)
        types = _types(whole) | _types(inner)
        enum = [*whole.get("enum", ()), *inner.get("enum", ())]
        whole = {**inner, **whole, "type": sorted(types), **({"enum": enum} if enum else {})}
    return whole


def _types(schema: Schema) -> set[str]:
    """The JSON types of its values; none: any. A whole number is a number, too."""
    found = schema.get("type", [])
    return {found} if isinstance(found, str) else {*found}


def present() -> dict[str, Any]:
    """The document as it is, without texts."""
    from drf_spectacular.generators import SchemaGenerator  # needs Django

    schema = SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    whole = _bare(json.loads(json.dumps(schema, default=str)))
    for operations in whole["paths"].values():
        for verb in (verb for verb in VERBS if verb in operations):
            answers = operations[verb]["responses"]
            operations[verb]["responses"] = {one: answers[one] for one in answers if one.startswith("2")}
    return {name: whole[name] for name in ("paths", "components")}


def _bare(part: Any, *, names: bool = False) -> Any:
    """names: its keys are names of fields, which may be called as texts are."""
    if isinstance(part, list):
        return [_bare(one) for one in part]
    if not isinstance(part, dict):
        return part
    kept = {key: value for key, value in part.items() if names or key not in TEXTS}
    return {key: _bare(one, names=key in ("properties", "schemas", "paths")) for key, one in kept.items()}


def breaks(old: Schema, new: Schema, changelog: str) -> list[str]:
    """What a program that knew `old` breaks with, unless a line of the changelog names it."""
    found = dict.fromkeys(Comparison(old, new).breaks())
    return [str(one) for one in found if not one.is_told(changelog)]


def since(release: str, changelog: str) -> str:
    """What the changelog tells of later releases than this one, and of none."""
    return changelog.partition(f"\n## {release}")[0]


def keep(path: Path, release: str) -> None:
    """Keep the present document, with a line for each address and each component."""
    document = present()
    paths, schemas = (
        ",\n".join(
            f"{json.dumps(name)}:{json.dumps(one, separators=(',', ':'))}" for name, one in part.items()
        )
        for part in (document["paths"], document["components"]["schemas"])
    )
    path.write_text(
        f'{{"release":"{release}",\n"paths":{{\n{paths}\n}},\n"components":{{"schemas":{{\n{schemas}\n}}}}}}\n'
    )


def main() -> None:
    import django

    from trainer import __version__

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
    django.setup()
    keep(KEPT, __version__)


if __name__ == "__main__":
    main()
