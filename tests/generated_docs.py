"""Tables of the docs that follow from the code.

`python -m tests.generated_docs` writes them.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from itertools import starmap
from pathlib import Path
from typing import Any

import django

from portal.events.types import TYPES, EventType, Meaning
from scheduler.core.job_terms import JOB_TERMS, JobTerm, Kind
from scheduler.core.types import Policy
from scheduler.simulator.baselines import SIMULATED
from trainer.recipes import DEFAULT_RECIPE, Param
from trainer.step_metrics import STEP_METRICS, StepMetric

DOCS = Path(__file__).resolve().parent.parent / "docs"
API, SCHEDULING, TRAINING = DOCS / "api.md", DOCS / "scheduling.md", DOCS / "training.md"
EVENTS = DOCS / "events.md"
MOST_FIELDS = 12  # of a body in a table; of a larger one those that it must have


def with_policies(page: str) -> str:
    """The page with one row for each policy in its table."""
    head = ("name", "order", "needs", "stops running jobs", "round", "source")
    return _with_table(page, head, map(_policy, SIMULATED.values()))


def with_terms(page: str) -> str:
    """The page with one row for each term of a job in its table."""
    head = ("term", "type", "default", "values", "who", "may change", "elsewhere", "what it is")
    return _with_table(page, head, map(_term, JOB_TERMS.values()))


def with_addresses(page: str) -> str:
    """The page with one row for each operation of the REST API in its table."""
    from drf_spectacular.generators import SchemaGenerator  # needs Django

    schema: dict[str, Any] = SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    bodies = schema["components"]["schemas"]
    rows = (
        _operation(verb.upper(), address, operation, bodies)
        for address, verbs in schema["paths"].items()
        for verb, operation in verbs.items()
    )
    return _with_table(page, ("address", "what it does", "takes"), rows)


def with_rest(page: str) -> str:
    """The page of the REST API with all of its tables."""
    return with_addresses(with_terms(page))


def with_step_metrics(page: str) -> str:
    """The page with one row for each step metric in its table."""
    return _with_table(page, ("metric", "over REST", "unit", "what it is"), map(_metric, STEP_METRICS))


def with_parameters(page: str) -> str:
    """The page with one row for each parameter of the recipe in its table."""
    head = ("parameter", "settled at", "default", "values", "what it is")
    return _with_table(page, head, (_param(name, param) for name, param in DEFAULT_RECIPE.params.items()))


def with_constants(page: str) -> str:
    """The page with one row for each constant of the recipe in its table."""
    rows = ((f"`{name}`", f"`{one.value}`", one.help) for name, one in DEFAULT_RECIPE.constants.items())
    return _with_table(page, ("constant", "value", "what it is"), rows)


def with_event_types(page: str) -> str:
    """The page with one row for each type of event in its table."""
    return _with_table(page, ("type", "what happened", "data", ""), starmap(_event_type, TYPES.items()))


def with_channels(page: str) -> str:
    """The page with one row for each channel of notices in its table."""
    from portal.notices.table import CHANNELS  # needs Django

    rows = ((f"`{name}`", channel.description) for name, channel in CHANNELS.items())
    return _with_table(page, ("channel", "what it does"), rows)


def with_events(page: str) -> str:
    """The page of events with all of its tables."""
    return with_channels(with_event_types(page))


def with_tables(page: str) -> str:
    """The page of the training process with all of its tables."""
    return with_constants(with_parameters(with_step_metrics(page)))


def _with_table(page: str, head: tuple[str, ...], rows: Iterable[Iterable[str]]) -> str:
    """The page with these rows in the table with this head."""
    top = _row(head) + _row(["---"] * len(head))
    table = re.compile(re.escape(top) + r"(\|.*\n)*")
    return table.sub(lambda _: top + "".join(map(_row, rows)), page)


def _row(cells: Iterable[str]) -> str:
    return re.sub(r"\|  (?=\|)", "| ", f"| {' | '.join(cells)} |\n")


def _policy(policy: Policy) -> list[str]:
    reported = policy.description
    stops = "yes" if policy.preempts else "no"
    every = f"{policy.round_s:g} s" if policy.round_s else ""
    return [f"`{policy.name}`", reported.order, reported.needs, stops, every, reported.source]


def _term(term: JobTerm) -> list[str]:
    default = "" if not term.default and term.kind is not Kind.COUNT else f"`{term.word(term.default)}`"
    values = ", ".join(f"`{word}`" for word in term.choices if word)
    if term.low is not None and term.high is not None:
        values = f"{term.low:,} to {term.high:,}"
    default = "required" if term.required else default.replace("True", "true")
    who = term.limited or "everybody"
    places = {"traces": term.trace, "decisions": term.seen}
    others = (f"`{name}` in {place}" for place, name in places.items() if name and name != term.name)
    change = term.change or "no"
    return [f"`{term.name}`", term.kind, default, values, who, change, ", ".join(others), term.help]


def _operation(verb: str, address: str, operation: Mapping[str, Any], bodies: Mapping[str, Any]) -> list[str]:
    """A row; takes: filters and other parameters of the address, then the fields of the body."""
    names = re.findall(r"{(\w+)}", address)
    for place, name in enumerate(names):
        word = name.removesuffix("_id").upper()
        address = address.replace(f"{{{name}}}", "ID" if name.endswith("_id") and not place else word)
    taken = [one["name"] for one in operation.get("parameters", ()) if one["in"] == "query"]
    for content in operation.get("requestBody", {}).get("content", {}).values():
        whole = _named(content["schema"], bodies)
        for body in (_named(one, bodies) for one in whole.get("oneOf", [whole])):
            fields = list(body.get("properties", {}))
            taken += fields if len(fields) <= MOST_FIELDS else [*body.get("required", []), "…"]
    shown = (
        f"`{name}`" if name != "…" else name for name in taken if name not in ("after", "fields", "limit")
    )
    what = " ".join(operation["description"].split())
    return [f"`{verb} {address.removeprefix('/api/')}`", what, ", ".join(shown)]


def _named(schema: Mapping[str, Any], bodies: Mapping[str, Any]) -> Any:
    """The component that a schema names, or the schema itself."""
    return bodies[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema


def _metric(metric: StepMetric) -> list[str]:
    return [f"`{metric.name}`", f"`{metric.public_name}`", metric.unit, f"{metric.label}: {metric.help}"]


def _event_type(type: EventType, meaning: Meaning) -> list[str]:
    data = ", ".join(f"`{name}`" for name in meaning.data) or ("by name" if meaning.others else "")
    marks = [mark for mark, holds in (("by hand", meaning.by_hand), ("private", meaning.private)) if holds]
    return [f"`{type}`", meaning.text, data, ", ".join(marks)]


def _param(name: str, param: Param) -> list[str]:
    default = "" if param.default is None else f"`{json.dumps(param.default)}`".replace('"', "")
    if param.choices:
        values = ", ".join(f"`{choice}`" for choice in param.choices)
    elif param.low is not None and param.high is not None:
        values = f"{param.low:g} to {param.high:,}"
    else:
        values = "`true`, `false`" if param.kind is bool else ""
    return [f"`{name}`", param.binds, default, values, param.help]


GENERATED = {
    API: with_rest, SCHEDULING: with_policies, TRAINING: with_tables, EVENTS: with_events
}  # fmt: skip

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
    django.setup()
    for page, written in GENERATED.items():
        page.write_text(written(page.read_text()))
