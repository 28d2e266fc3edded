"""The parts of a base model that learn, are in 4 bits or stay as they are.

They are sentences for log and card.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from trainer.architectures import number_of_experts
from trainer.train.base.adapters import expert_pools, targets
from trainer.train.base.probe import Reach
from trainer.train.settings import TrainingSpec

_NAMED = 12  # parts in a sentence


def scope(model: Any, order: TrainingSpec, reach: Reach | None) -> tuple[str, ...]:
    """A sentence each, of a model that has no adapter yet."""
    whole = _parameters(model)
    method = order.settings.method
    if method == "full":
        notes = ["All weights that text reaches learn."]
    else:
        adapted = list(targets(model, reach, order.settings.target_modules))
        kinds = _listed(dict.fromkeys(name.rpartition(".")[2] for name in adapted))
        notes = [f"LoRA adapts {len(adapted):,} linear layers ({kinds}); all other weights are frozen."]
        routed = sum(map(_parameters, _experts(model)))
        if routed:
            notes.append(f"Experts and their routers are not adapted ({routed / whole:.0%} of the weights).")
    if method == "qlora":
        stored = sum(size(weight) for weight in model.parameters() if hasattr(weight, "quant_state"))
        notes.append(f"{stored / whole:.0%} of the weights are stored in 4 bits.")
    if reach is not None and (aside := _aside(model, reach)):
        share = sum(aside.values()) / whole
        notes.append(f"Text does not reach {_listed(aside)} ({share:.1%} of the weights): left as they are.")
    return tuple(notes)


def size(weight: Any) -> int:
    """Numbers in a weight; one stored in 4 bits holds two in each of its bytes."""
    stored = getattr(weight, "quant_state", None)
    return int(weight.numel() if stored is None else stored.shape.numel())


def _parameters(module: Any) -> int:
    return sum(map(size, module.parameters()))


def _experts(model: Any) -> Iterator[Any]:
    routed = number_of_experts(model.config.to_dict())
    return (model.get_submodule(name) for name in expert_pools(model, routed))


def _aside(model: Any, reach: Reach) -> dict[str, int]:
    """Return the counts of parameters that text does not reach, by module.

    The modules are the largest ones that text does not reach; a weight that is on its own goes
    by its own name.
    """
    left = {name: size(weight) for name, weight in model.named_parameters() if not _reached(name, reach)}
    kept = {name for name, _ in model.named_parameters()} - left.keys()
    inner = {parent for name in kept for parent in _parents(name)}
    found: dict[str, int] = {}
    for name, count in left.items():
        outer = next((parent for parent in _parents(name) if parent not in inner), name)
        found[outer] = found.get(outer, 0) + count
    return found


def _reached(name: str, reach: Reach) -> bool:
    """Weights in 4 bits have no gradient: there the module tells."""
    return name in reach.weights or name.rpartition(".")[0] in reach.modules


def _parents(name: str) -> Iterator[str]:
    """The modules around a weight, the outermost first."""
    parts = name.split(".")[:-1]
    return (".".join(parts[: end + 1]) for end in range(len(parts)))


def _listed(names: Collection[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(list(names)[:_NAMED]) + more
