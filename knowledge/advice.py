"""Recommendations, options for dispatch, forecasts."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from knowledge import catalogue_entries, selectors
from knowledge.core.analytic.config_table import hardware
from knowledge.core.domain import catalogue, config_space
from knowledge.core.domain.types import (
    Advice,
    Choice,
    Config,
    Evidence,
    Goal,
    GpuPool,
    Inventory,
    Option,
    Prediction,
    Source,
    Workload,
)
from knowledge.core.evaluate import experiment_design as choosing
from knowledge.core.evaluate.cross_validation import LeaveOneOutErrors, leave_one_out_errors
from knowledge.core.explain import evidence, explanations
from knowledge.core.explain import feasibility as checking
from knowledge.core.explain.feasibility import Check
from knowledge.core.predict.base import MIN_P_VALID
from knowledge.core.predict.memory_parts import memory_parts
from knowledge.core.recommend import defaults, duration, objectives, search
from knowledge.core.recommend.submit_defaults import (
    Request,
    batch_choices,
    choose_submit_values,
    four_bits_instead,
)
from knowledge.loaded_predictor import predictor_before, predictor_for
from knowledge.models import Execution

log = logging.getLogger(__name__)

EVIDENCE_SHOWN = 5
EVIDENCE_SCANNED = 1000


class AdviceFailed(RuntimeError):
    """Advice could not be made; a submission goes on with `default_options`."""


@contextmanager
def _edge(what: str) -> Iterator[None]:
    """Turns what nobody foresaw into AdviceFailed: advice failing never blocks a submission."""
    try:
        yield
    except (catalogue.UnknownModel, AdviceFailed):
        raise
    except Exception as error:
        log.exception("advice failed", extra={"asked": what})
        raise AdviceFailed(f"{what} failed: {error}") from error


def advise(
    *,
    model: str,
    fixed: Mapping[str, Any],
    workload: Workload,
    inventory: Inventory,
    goal: Goal = Goal.BALANCED,
    deadline_s: float | None = None,
    budget: float | None = None,
) -> Advice:
    """A whole configuration for the model and data, with every value's reason, and options for dispatch.

    Options within `deadline_s` seconds and `budget` come first, whatever the goal. `fixed` holds what the
    user set, already cleaned by `Recipe.clean`; none of it ever changes. Raises UnknownModel (with
    suggestions) for a plain name that is no model, AdviceFailed for the unexpected.
    """
    with _edge("advise"):
        request = _request(model, fixed, workload, inventory)
        choices, found = _settled(request, goal)
        found = objectives.ranked(found, goal, deadline_s, budget)
        bound = _values(choices)
        best = found[0] if found else None
        return Advice(
            bound=bound,
            chosen=choices | explanations.dispatch_choices(request, found),
            options=found,
            evidence=_evidence(best.config) if best and request.model else (),
            predictor_version=selectors.state().predictor,
            notes=(
                *explanations.notes(request, bound, found),
                *explanations.missed(found, deadline_s, budget),
                *explanations.unpriced(found, goal),
            ),
            pareto=tuple(option.key for option in objectives.pareto(found)),
            memory_parts=_memory_parts(best, inventory),
        )


def check(*, model: str, fixed: Mapping[str, Any], workload: Workload, inventory: Inventory) -> Check:
    """Does the configuration that the user fixed fit, and if not, what is the smallest change that does?

    The effective batch is kept. Raises as `advise`.
    """
    with _edge("check"):
        request = _request(model, fixed, workload, inventory)
        choices, _ = _settled(request, Goal.BALANCED)
        batch = choices["effective_batch_size"].value
        whole = replace(request, fixed={**fixed, "effective_batch_size": batch})
        return checking.check(whole, lambda one: _settled(one, Goal.BALANCED)[1])


def options(
    *,
    model: str,
    bound: Mapping[str, Any],
    fixed: Mapping[str, Any],
    workload: Workload,
    inventory: Inventory,
    goal: Goal = Goal.BALANCED,
    deadline_s: float | None = None,
    budget: float | None = None,
    less_memory_than: float | None = None,
) -> tuple[Option, ...]:
    """The options of a job whose submission settled `bound`, at most one a bundle, ranked as by `advise`.

    After running out of memory: `less_memory_than` keeps only those predicted to need fewer bytes a GPU.
    """
    with _edge("options"):
        request = _request(model, fixed, workload, inventory)
        found = _options(request, bound, goal, less_memory_than)
        return objectives.ranked(found, goal, deadline_s, budget)


def default_options(
    *,
    model: str,
    bound: Mapping[str, Any],
    fixed: Mapping[str, Any],
    workload: Workload,
    inventory: Inventory,
) -> tuple[Option, ...]:
    """One option of stated defaults per bundle; nothing is predicted (`Source.DEFAULT`, values of 0)."""
    request = Request(model, None, fixed, workload, inventory)
    return defaults.default_options(request, bound)


def default_advice(
    *,
    model: str,
    fixed: Mapping[str, Any],
    workload: Workload,
    inventory: Inventory,
    goal: Goal = Goal.BALANCED,  # noqa: ARG001 - called like `advise`; nothing here can be ranked by it
) -> Advice:
    """The advice of stated defaults, for a submission whose advice failed."""
    request = Request(model, None, fixed, workload, inventory)
    choices = choose_submit_values(request)
    bound = _values(choices)
    found = defaults.default_options(request, bound)
    return Advice(
        bound=bound,
        chosen=choices | explanations.dispatch_choices(request, found),
        options=found,
        notes=("Advice was not available; these are stated defaults and nothing is predicted.",),
    )


def inventory_options_version() -> str:
    """A token that changes when options should be computed anew: the active predictor, or `prior`, and what
    was added to the catalogue.
    """
    number, added = selectors.state().predictor, catalogue_entries.version()
    return ("prior" if number is None else str(number)) + (f"+{added}" if added else "")


def reforecast(option: Option, *, workload: Workload, startup_s: float) -> Option:
    """The option with the exact token histogram and start-up of a trainer's first report."""
    return duration.reforecast(option, data=workload, startup_s=startup_s)


def predict(configs: Sequence[Config], inventory: Inventory | None = None) -> list[Prediction]:
    """Predictions for any configurations, on the inventory's hardware where it is given."""
    with _edge("predict"):
        return predictor_for(hardware(inventory)).predict(configs)


def informative(
    *, models: Sequence[str], pool: GpuPool, inventory: Inventory, count: int, longest_s: float
) -> list[Config]:
    """The runs on one GPU of the pool that would teach most, best first, a step within `longest_s`.

    Raises UnknownModel.
    """
    with _edge("informative"):
        for model in models:
            catalogue.model(model)
        found = choosing.candidates(models, pool)
        return choosing.choose_experiments(found, predictor_for(hardware(inventory)), count, longest_s)


def judged(runs: Sequence[Execution], inventory: Inventory) -> LeaveOneOutErrors:
    """Errors of the rate of own measured runs: foretold from none of them, and each from its others.

    By the version that answered before the first of them was recorded: a later one has learnt from some.
    """
    with _edge("judge"):
        mine = {run.pk for run in runs}
        predictor = predictor_before(min(mine), hardware(inventory))
        known = selectors.own_runs(up_to=selectors.state().last_own)
        others = [run.row for run in known if run.pk not in mine and run.gpu_model == runs[0].gpu_model]
        return leave_one_out_errors(predictor, others, [run.row for run in runs])


def _request(model: str, fixed: Mapping[str, Any], data: Workload, inventory: Inventory) -> Request:
    """Local directories and hub ids may be outside the catalogue; a plain name may not."""
    try:
        return Request(model, catalogue.model(model), fixed, data, inventory)
    except catalogue.UnknownModel:
        if "/" in model:
            return Request(model, None, fixed, data, inventory)
        raise


def _options(
    request: Request, bound: Mapping[str, Any], goal: Goal, less_memory_than: float | None = None
) -> tuple[Option, ...]:
    if request.model is None:
        return defaults.default_options(request, bound) if less_memory_than is None else ()
    predicted = search.options(
        request,
        bound,
        predictor_for(hardware(request.inventory)),
        goal=goal,
        startups=selectors.startups(),
        less_memory_than=less_memory_than,
    )
    if predicted or less_memory_than is not None:
        return predicted
    # Of GPUs that the catalogue lacks nothing is known: beside a forecast they would seem to take no time.
    return defaults.default_options(request.of_unknown_gpus(), bound)


def _settled(request: Request, goal: Goal) -> tuple[dict[str, Choice], tuple[Option, ...]]:
    """All choices and their options, in 4 bits where the method is open and LoRA is not likely to fit."""
    choices, found = _settle_batch(request, choose_submit_values(request), goal)
    smaller = four_bits_instead(request, choices["method"], found)
    if smaller is None:
        return choices, found
    tried = _settle_batch(request, choose_submit_values(request, smaller), goal)
    likely = any(option.p_valid >= MIN_P_VALID for option in tried[1])
    return tried if likely or (tried[1] and not found) else (choices, found)


def _settle_batch(
    request: Request, choices: Mapping[str, Choice], goal: Goal
) -> tuple[dict[str, Choice], tuple[Option, ...]]:
    """The choices with the effective batch bound, and its options.

    Of several batches the one nearest to the default wins: what is learnt is not decided by speed.
    """
    tried = []
    for batch in batch_choices(request, choices["effective_batch_size"]):
        whole = {**choices, "effective_batch_size": batch}
        tried.append((whole, _options(request, _values(whole), goal)))
    return next((entry for entry in tried if entry[1]), tried[0])


def _values(choices: Mapping[str, Choice]) -> dict[str, Any]:
    """The chosen values without those that were left out."""
    return {name: choice.value for name, choice in choices.items() if choice.value is not None}


def _memory_parts(best: Option | None, inventory: Inventory) -> dict[str, float]:
    if best is None or best.source is Source.DEFAULT:
        return {}
    here = hardware(inventory)
    return memory_parts(best, predictor_for(here).knowledge, here)


def _evidence(config: Config) -> tuple[Evidence, ...]:
    config = config_space.canonical(config)
    rows = selectors.evidence_rows(evidence.related_models(config.model_name), config)
    measured = [
        Evidence(
            config=row.config,
            tokens_per_second=row.tokens_per_second,
            peak_memory_fraction=row.peak_memory_fraction,
            status=row.status,
            source=row.source,
            distance=evidence.distance(config, row.config),
        )
        for row in rows[:EVIDENCE_SCANNED]
    ]
    return tuple(sorted(measured, key=lambda entry: entry.distance)[:EVIDENCE_SHOWN])
