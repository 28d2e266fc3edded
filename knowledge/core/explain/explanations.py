"""Reasons for each value that binds at dispatch, and notes on the whole."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from knowledge.core.domain import config_space, tuning_support, workload
from knowledge.core.domain.catalogue import GIB
from knowledge.core.domain.types import Choice, Goal, Option, Source, all_priced
from knowledge.core.domain.wording import counted, money, rough_time
from knowledge.core.explain.infeasible import offered_nowhere, why_nothing_fits
from knowledge.core.predict.base import MIN_P_VALID
from knowledge.core.recommend.objectives import meets
from knowledge.core.recommend.search_space import SearchSpace
from knowledge.core.recommend.submit_defaults import Request, user_choice

WAITS = "If you submit it now, the job waits until a node that can run it joins."
AWAY = "No node is in service: all are lost or drained. These figures hold once they return as they were."
_PARTLY_PRICED = "Some nodes have no price, so the balance is between time and GPU time, not money."


def dispatch_choices(request: Request, options: tuple[Option, ...]) -> dict[str, Choice]:
    """A choice for every parameter that binds at dispatch, from the best option."""
    best = options[0] if options else None
    chosen = {}
    for name in config_space.DISPATCH:
        if name in request.fixed:
            chosen[name] = user_choice(request.fixed[name])
        elif best is None:
            chosen[name] = Choice(value=None, by="default", reason="Chosen when a suitable node is free.")
        else:
            by = "default" if best.source is Source.DEFAULT else "recommended"
            reason = _reason(name, best, options, request)
            chosen[name] = Choice(value=getattr(best.config, name), by=by, reason=reason)
    return chosen


def _reason(name: str, best: Option, options: tuple[Option, ...], request: Request) -> str:
    if best.source is Source.DEFAULT:
        return "A default; speed and memory cannot be predicted here."
    if name in ("gpu_model", "number_gpus") and (only := _only(name, best, request)):
        return only
    compared = {
        "gpu_model": _gpu_model,
        "number_gpus": _number_gpus,
        "number_nodes": _number_nodes,
        "per_device_batch_size": _batch,
        "gradient_accumulation_steps": _accumulation,
    }
    return compared[name](best, options) if name in compared else _of_value(name, best)


def _only(name: str, best: Option, request: Request) -> str:
    """Say that the nodes offer no other; empty where they do."""
    if name == "gpu_model":
        models = {pool.gpu_model for pool in request.pools}
        return f"The nodes here offer {best.gpu_model} alone." if len(models) == 1 else ""
    counts = {
        gpus
        for pool in request.pools
        if pool.gpu_model == best.gpu_model
        for _, gpus in config_space.open_bundles(
            tuning_support.node_sizes(pool, best.config.tuning), {}, request.inventory.max_nodes
        )
    }
    return "The nodes here can give one job no other number of GPUs." if len(counts) == 1 else ""


def _gpu_model(best: Option, options: tuple[Option, ...]) -> str:
    others = [option for option in options if option.gpu_model != best.gpu_model]
    if not others:
        return "No other GPU model here can run this job."
    other = others[0]
    here, there = _time_and_cost(best, other)
    return (
        f"{best.gpus} × {best.gpu_model} should take {here}; the best alternative,"
        f" {other.gpus} × {other.gpu_model}, would take {there}."
    )


def _time_and_cost(*compared: Option) -> list[str]:
    """How long each takes and how its cost compares with the first's.

    Costs are compared where all have a price.
    """
    times = [rough_time(option.duration_s.value) for option in compared]
    costs = [option.cost.value for option in compared]
    if not all(costs):
        return times
    first, *others = costs
    shares = [_share(cost / first) for cost in others]
    return [times[0], *(f"{time} at {share}" for time, share in zip(times[1:], shares, strict=True))]


def _share(of_cost: float) -> str:
    return "the same cost" if f"{of_cost:.0%}" == "100%" else f"{of_cost:.2g} times the cost"


def _number_gpus(best: Option, options: tuple[Option, ...]) -> str:
    same = [option for option in options if option.gpu_model == best.gpu_model and option.gpus != best.gpus]
    if not same:
        return f"No other number of {best.gpu_model} GPUs can run this job."
    other = same[0]
    here, there = _time_and_cost(best, other)
    return f"{_gpus(best)} should take {here}; {_gpus(other)} would take {there}."


def _gpus(option: Option) -> str:
    return counted(option.gpus, "GPU")


def _number_nodes(best: Option, _: tuple[Option, ...]) -> str:
    if best.gpus == 1:
        return "A single GPU needs only one node."
    if best.nodes == 1:
        return "GPUs on the same node exchange gradients fastest."
    return f"No single node has {best.gpus} GPUs."


def _batch(best: Option, _: tuple[Option, ...]) -> str:
    size = best.config.per_device_batch_size
    return (
        f"{counted(size, 'sample')} at a time per GPU: the best speed"
        f" ({best.tokens_per_second.value:,.0f} tokens/s) with the least memory"
        f" ({best.peak_memory_bytes.value / GIB:.1f} GiB)."
    )


def _accumulation(best: Option, _: tuple[Option, ...]) -> str:
    config = best.config
    return (
        f"{config.gradient_accumulation_steps} × {config.per_device_batch_size} × {config.number_gpus} gives"
        f" the effective batch size of {config.effective_batch_size}."
    )


def _of_value(name: str, best: Option) -> str:
    """The parameter's own reason for the value."""
    param = config_space.PARAMS[name]
    reason = param.reasons.get(getattr(best.config, name), param.help)
    return reason.format(memory=f"{best.peak_memory_bytes.value / GIB:.1f} GiB")


def notes(
    request: Request, bound: Mapping[str, Any], options: tuple[Option, ...], space: SearchSpace
) -> tuple[str, ...]:
    """Notes for a person before submitting; empty when all is well."""
    if request.unloadable:
        return (request.unloadable, WAITS)
    if why := offered_nowhere(request):
        return (why,)
    away = () if request.inventory.in_service else (AWAY,)
    if not options:
        return (why_nothing_fits(request, bound, space), WAITS, *away)
    found = [*away]
    if request.lender:
        found.append(
            f"{request.model_name} is not in the catalogue: all figures are of {request.lender}, the most"
            " alike in size, and less sure."
        )
    if options[0].source is Source.DEFAULT:
        lacking = f"GPU {options[0].gpu_model}" if request.model else f"model {request.model_name}"
        found.append(f"The {lacking} is not in the catalogue: time, memory and cost are unknown.")
    elif options[0].p_valid < MIN_P_VALID:
        found.append(f"Risky: even the best option has only a {options[0].p_valid:.0%} chance to run.")
    if options[0].outside and options[0].source is Source.MODEL:
        found.append("Not measured so far: this GPU, kind of model, setting or size is new.")
    if options[0].source is Source.PRIOR:
        found.append("Predicted from physics alone; the intervals are assumed rather than calibrated.")
    if options[0].source is Source.OWN:
        found.append(f"Predicted from physics, corrected by runs on {options[0].gpu_model} in this portal.")
    return tuple(found)


def cut(request: Request) -> tuple[str, ...]:
    """A note when rows are longer than the length that the person chose.

    Its counts are estimated.
    """
    longest, data = int(request.fixed.get("tokens_per_sample") or 0), request.data
    rows = sum(number for length, number in data.lengths if length > longest > 0)
    if not rows:
        return ()
    lost = 1 - workload.kept_tokens(data, longest)
    return (
        f"About {rows:,} of {counted(data.rows, 'row')} have more than the {longest:,} tokens that you chose"
        f" and are cut there, which loses {lost:.1%} of all tokens; a larger tokens_per_sample keeps them.",
    )


def missed(
    options: tuple[Option, ...], deadline_s: float | None, budget: float | None, currency: str
) -> tuple[str, ...]:
    """A note when even the first option exceeds the deadline or the budget."""
    if not options or options[0].source is Source.DEFAULT or meets(options[0], deadline_s, budget):
        return ()
    best = options[0]
    late_s = best.duration_s.value - deadline_s if deadline_s else 0.0
    late = f", {rough_time(late_s)} more than the deadline leaves," if late_s > 0 else ""
    return (
        f"No option meets the limits; the closest takes {rough_time(best.duration_s.value)}{late}"
        f" and costs {money(best.cost.value, currency)}."
        " Allow more time or money, or train on fewer rows.",
    )


def unpriced(options: tuple[Option, ...], goal: Goal) -> tuple[str, ...]:
    """Return a note if the goal counts money and the options cost none.

    They cost none where their nodes have no price.
    """
    if not options or options[0].source is Source.DEFAULT or all_priced(options):
        return ()
    if any(option.cost.value for option in options):
        return (_PARTLY_PRICED,) if goal is Goal.BALANCED else ()
    if goal is Goal.BUDGET:
        return ("No node has a price, so every option is within the budget and the fastest comes first.",)
    if goal in (Goal.CHEAPEST, Goal.DEADLINE):
        return ("No node has a price, so the cheapest option is the one that needs the least GPU time.",)
    return ()
