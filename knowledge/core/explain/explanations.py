"""Why each value that binds at dispatch was chosen, and what a person should know about the whole."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from knowledge.core.domain import config_space
from knowledge.core.domain.catalogue import GIB
from knowledge.core.domain.types import Choice, Goal, Option, Source
from knowledge.core.explain.infeasible import why_nothing_fits
from knowledge.core.predict.base import MIN_P_VALID
from knowledge.core.recommend.objectives import meets
from knowledge.core.recommend.search_space import SearchSpace
from knowledge.core.recommend.submit_defaults import Request, user_choice


def dispatch_choices(request: Request, options: tuple[Option, ...]) -> dict[str, Choice]:
    """A choice for every parameter that binds at dispatch, from the best option."""
    best = options[0] if options else None
    chosen = {}
    for name in config_space.DISPATCH:
        if name in request.fixed:
            chosen[name] = user_choice(name, request.fixed[name])
        elif best is None:
            chosen[name] = Choice(value=None, by="default", reason="Settled when a node is free to run it.")
        else:
            by = "default" if best.source is Source.DEFAULT else "recommended"
            chosen[name] = Choice(
                value=getattr(best.config, name), by=by, reason=_reason(name, best, options)
            )
    return chosen


def _reason(name: str, best: Option, options: tuple[Option, ...]) -> str:
    if best.source is Source.DEFAULT:
        return "A stated default; nothing is known here about speed or memory."
    reasons = {
        "gpu_model": _gpu_model,
        "number_gpus": _number_gpus,
        "number_nodes": _number_nodes,
        "per_device_batch_size": _batch,
        "gradient_accumulation_steps": _accumulation,
        "gradient_checkpointing": _checkpointing,
        "sharding": _sharding,
    }
    return reasons[name](best, options)


def _gpu_model(best: Option, options: tuple[Option, ...]) -> str:
    others = [option for option in options if option.gpu_model != best.gpu_model]
    if not others:
        return f"This job fits on no other GPU model than {best.gpu_model} here."
    other = others[0]
    return (
        f"{best.gpus} x {best.gpu_model} should take {_time(best)}; the best other,"
        f" {other.gpus} x {other.gpu_model}, would take {_time(other)}."
    )


def _number_gpus(best: Option, options: tuple[Option, ...]) -> str:
    same = [option for option in options if option.gpu_model == best.gpu_model and option.gpus != best.gpus]
    if not same:
        return f"No other number of {best.gpu_model} can take this job."
    other = same[0]
    return f"{best.gpus} should take {_time(best)}; {other.gpus} would take {_time(other)}."


def _number_nodes(best: Option, _: tuple[Option, ...]) -> str:
    if best.gpus == 1:
        return "One GPU is on one node."
    if best.nodes == 1:
        return "GPUs of one node exchange gradients fastest."
    return f"No single node has {best.gpus} GPUs."


def _batch(best: Option, _: tuple[Option, ...]) -> str:
    size = best.config.per_device_batch_size
    return (
        f"{size} at a time reach the best rate ({best.tokens_per_second.value:,.0f} tokens/s) with the least"
        f" memory ({best.peak_memory_bytes.value / GIB:.1f} GiB)."
    )


def _accumulation(best: Option, _: tuple[Option, ...]) -> str:
    config = best.config
    return (
        f"{config.gradient_accumulation_steps} x {config.per_device_batch_size} x {config.number_gpus} keeps"
        f" the effective batch of {config.effective_batch_size}."
    )


def _checkpointing(best: Option, _: tuple[Option, ...]) -> str:
    memory = f"{best.peak_memory_bytes.value / GIB:.1f} GiB"
    if best.config.gradient_checkpointing:
        return f"Recomputing activations keeps the peak at {memory}."
    return f"There is room for all activations ({memory}), so nothing is computed twice."


def _sharding(best: Option, _: tuple[Option, ...]) -> str:
    reasons = {
        "none": "One GPU holds the whole model.",
        "ddp": "Each GPU holds a whole copy and only gradients are exchanged.",
        "fsdp": "The model is split over the GPUs, which lowers the memory each one needs.",
    }
    return reasons[best.config.sharding or "none"]


def _time(option: Option) -> str:
    seconds = option.duration_s.value
    if seconds < 60:
        return f"{seconds:.0f} s"
    if seconds < 3600:
        return f"{seconds / 60:.0f} min"
    hours, minutes = divmod(round(seconds) // 60, 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"


def notes(
    request: Request, bound: Mapping[str, Any], options: tuple[Option, ...], space: SearchSpace
) -> tuple[str, ...]:
    """Notes for a person before submitting; empty when all is well."""
    if not request.pools:
        wanted = request.fixed.get("gpu_model")
        what = f"No registered node offers {wanted}" if wanted else "No node is registered yet"
        return (f"{what}: the job will wait until one is.",)
    if not options:
        return (why_nothing_fits(request, bound, space),)
    found = []
    if options[0].source is Source.DEFAULT:
        lacking = f"GPU {options[0].gpu_model}" if request.model else f"model {request.model_name}"
        found.append(f"The {lacking} is not in the catalogue: time, memory and cost are unknown.")
    elif options[0].p_valid < MIN_P_VALID:
        found.append(f"Risky: the best option runs with a probability of {options[0].p_valid:.0%}.")
    if options[0].outside and options[0].source is Source.MODEL:
        found.append("Beyond what was measured so far: this GPU, kind of model, setting or size is new.")
    if options[0].source is Source.PRIOR:
        found.append("Predicted from physics alone; the intervals are stated, not calibrated.")
    if options[0].source is Source.OWN:
        found.append(f"Predicted from physics, corrected by what ran on {options[0].gpu_model} here.")
    return tuple(found)


def missed(options: tuple[Option, ...], deadline_s: float | None, budget: float | None) -> tuple[str, ...]:
    """A note when even the first option exceeds the deadline or the budget."""
    if not options or options[0].source is Source.DEFAULT or meets(options[0], deadline_s, budget):
        return ()
    best = options[0]
    return (
        f"No option meets the limits; the nearest takes {_time(best)} and costs {best.cost.value:.2f}."
        " Allow more time or money, or train on fewer rows.",
    )


def unpriced(options: tuple[Option, ...], goal: Goal) -> tuple[str, ...]:
    """A note when the goal counts money and no option costs any, as no node has a price."""
    if not options or options[0].source is Source.DEFAULT or any(option.cost.value for option in options):
        return ()
    if goal is Goal.BUDGET:
        return ("No node has a price: every place is within the budget, and the fastest comes first.",)
    if goal in (Goal.CHEAPEST, Goal.DEADLINE):
        return ("No node has a price: the cheapest is the place that needs the least GPU time.",)
    return ()
