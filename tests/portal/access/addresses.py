"""Every address that the portal answers.

They are read from its own table of routes, with names for the gaps.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import product

from django.urls import URLPattern, URLResolver, get_resolver

from portal.web.admin.catalogue import FORMS
from portal.web.jobs import job
from portal.web.jobs.tabs import TABS
from portal.web.nodes import node
from portal.web.people import people, service_accounts, teams
from trainer.step_metrics import STEP_CHARTS

# Values for a gap, by its name: one object, or all the words that the view knows.
GAPS: dict[str, str] = {
    "upload_id": "{upload}",
    "job_id": "{job}", "array_id": "{array}", "file_id": "{file}", "user_id": "{user}",
    "account_id": "{account}", "key_id": "{account_token}", "token_id": "{token}", "team_id": "{team}",
    "member_id": "{member}", "node_id": "{node}", "calibration_id": "{calibration}", "claim_id": "{claim}",
    "window_id": "{window}", "market_id": "{market}", "tree_id": "{tree}", "question_id": "{question}",
    "execution_id": "{execution}",
    "simulation_id": "{simulation}", "number": "{predictor}", "predictor_id": "{predictor_row}",
    "path": "{output}",
}  # fmt: skip
# In addresses of the API numbers come after what names their kind.
PREFIXED = {
    "window_id": "win", "team_id": "team", "user_id": "user", "account_id": "user", "token_id": "tok",
    "market_id": "mkt", "execution_id": "exec", "predictor_id": "pred",
}  # fmt: skip
WORDS: dict[tuple[str, str], Iterable[str]] = {
    ("jobs/", "verb"): (*job.VERBS, *job.FORMS), ("jobs/", "tab"): TABS, ("jobs/", "chart"): STEP_CHARTS,
    ("service-accounts/<int:account_id>/t", "verb"): service_accounts.TOKEN_VERBS,
    ("service-accounts/", "verb"): service_accounts.VERBS,
    # Tokens of a person, and of a service account.
    ("api/users/<str:user_id>/tokens/", "user_id"): ("user-{user}", "user-{account}"),
    ("api/users/<str:user_id>/tokens/", "token_id"): ("tok-{token}", "tok-{account_token}"),
    ("users/", "verb"): people.VERBS, ("teams/<int:team_id>/<", "verb"): teams.VERBS,
    ("teams/<int:team_id>/m", "verb"): ("role", "remove"), ("nodes/", "verb"): node.VERBS,
    ("catalogue/", "kind"): FORMS, ("api/models/", "name"): ("{model}",), ("api/gpus/", "name"): ("{gpu}",),
    ("v1/models", "name"): ("{model}", "builtin/tiny-llama"),
    ("agent/", "name"): ("train.jsonl",), ("agent/", "wheel"): ("foretune_node.whl",),
    ("client/", "wheel"): ("foretune.whl",),
}  # fmt: skip
# What no other route answers, and one address for those that several prefixes share.
OTHER_ROUTES, OTHER_NAMES = "api/^.*$", r"^.*\Z"
ONE_FOR_SEVERAL = {
    r"^(?:v1|openai/v1|openai)/": "v1/",
    r"^(?:v1|openai)\Z": "v1",
    r"^(?:api|oauth(?:/.*)?)\Z": "oauth/nothing",
}
GAP = re.compile(r"<\w+:(\w+)>")
TABLES = "/admin/"  # Django's own addresses for looking at tables: one rule for all


def routes() -> set[str]:
    """All routes as the resolver writes them, those of the tables aside."""
    return {route for route in _below(get_resolver(), "") if not f"/{route}".startswith(TABLES)}


def _below(resolver: URLResolver, prefix: str) -> Iterator[str]:
    for pattern in resolver.url_patterns:
        if isinstance(pattern, URLPattern):
            yield prefix + str(pattern.pattern)
        else:
            yield from _below(pattern, prefix + str(pattern.pattern))


def addresses(route: str) -> Iterator[str]:
    """The route with its gaps filled, once for each word that it knows."""
    if route == OTHER_ROUTES:
        route = "api/nothing/"
    for prefixes, prefix in ONE_FOR_SEVERAL.items():
        route = route.replace(prefixes, prefix)
    route = route.replace(OTHER_NAMES, "nothing")
    names = GAP.findall(route)
    for filling in product(*(_fillings(route, name) for name in names)):
        filled = iter(filling)
        yield "/" + GAP.sub(lambda _: next(filled), route)  # noqa: B023 - used at once


def _fillings(route: str, name: str) -> Sequence[str]:
    for (prefix, gap), words in WORDS.items():
        if gap == name and route.startswith(prefix):
            return list(words)
    prefix = f"{PREFIXED[name]}-" if route.startswith("api/") and name in PREFIXED else ""
    return [prefix + GAPS[name]]


def all_addresses() -> list[str]:
    return sorted(address for route in routes() for address in addresses(route))
