"""The parts of a base model that learn, are in 4 bits or stay as they are.

They are sentences for log and card.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from trainer.architectures import keys_picked, number_of_experts
from trainer.train.base.adapters import LeftOut, candidates, expert_pools
from trainer.train.base.probe import Reach
from trainer.train.settings import TrainingSpec

_NAMED = 12  # parts in a sentence


def scope(model: Any, order: TrainingSpec, reach: Reach | None) -> tuple[str, ...]:
    """A sentence each, of a model that has no adapter yet."""
    whole = _parameters(model)
    tuning = order.settings.tuning
    if tuning == "full":
        notes = ["All weights that text reaches learn."]
    else:
        layers: dict[LeftOut | None, list[str]] = {None: []}
        for name, why_not in candidates(model, reach, order.settings.target_modules):
            layers.setdefault(why_not, []).append(name)
        adapted = layers.pop(None)
        notes = [
            f"LoRA adapts {len(adapted):,} linear layers ({_kinds(adapted)}); all other weights are frozen."
        ]
        notes += [
            f"No adapter for {_kinds(names)} ({len(names):,} layers): {why_not}."
            for why_not, names in layers.items()
        ]
        routed = sum(map(_parameters, _experts(model)))
        if routed:
            notes.append(f"Experts and their routers are not adapted ({routed / whole:.0%} of the weights).")
    if tuning == "qlora":
        stored = sum(size(weight) for weight in model.parameters() if hasattr(weight, "quant_state"))
        notes.append(f"{stored / whole:.0%} of the weights are stored in 4 bits.")
    picked = keys_picked(model.config.to_dict())
    if 0 < picked < order.settings.tokens_per_sample and order.settings.per_device_batch_size > 1:
        notes.append(
            f"Its attention picks {picked:,} keys for each token. Padding beside a longer row can change the"
            " pick, so losses depend a little on the rows that share a micro-batch; with"
            " per_device_batch_size 1 they do not."
        )
    for says, aside in _asides(model, reach) if reach is not None else ():
        share = sum(aside.values()) / whole
        notes.append(f"{says} {_listed(aside)} ({share:.1%} of the weights): left as they are.")
    return tuple(notes)


def _kinds(names: Collection[str]) -> str:
    return _listed(dict.fromkeys(name.rpartition(".")[2] for name in names))


def size(weight: Any) -> int:
    """Numbers in a weight; one stored in 4 bits holds two in each of its bytes."""
    stored = getattr(weight, "quant_state", None)
    return int(weight.numel() if stored is None else stored.shape.numel())


def _parameters(module: Any) -> int:
    return sum(map(size, module.parameters()))


def _experts(model: Any) -> Iterator[Any]:
    routed = number_of_experts(model.config.to_dict())
    return (model.get_submodule(name) for name in expert_pools(model, routed))


def _asides(model: Any, reach: Reach) -> Iterator[tuple[str, dict[str, int]]]:
    """Yield the parts that do not run on text, then those without a gradient."""
    named = model.named_parameters()
    unmoved = {name: size(weight) for name, weight in named if not _counts(name, weight, reach)}
    idle = {name for name in unmoved if name.rpartition(".")[0] not in reach.called}
    for says, names in (("Text does not reach", idle), ("No gradient reaches", unmoved.keys() - idle)):
        if names:
            yield says, _aside(model, {name: unmoved[name] for name in unmoved if name in names})


def _aside(model: Any, left: dict[str, int]) -> dict[str, int]:
    """Return the counts of parameters left as they are, by module.

    The modules are the largest ones that hold nothing else; a weight that is on its own goes
    by its own name.
    """
    kept = {name for name, _ in model.named_parameters()} - left.keys()
    inner = {parent for name in kept for parent in _parents(name)}
    found: dict[str, int] = {}
    for name, count in left.items():
        outer = next((parent for parent in _parents(name) if parent not in inner), name)
        found[outer] = found.get(outer, 0) + count
    return found


def _counts(name: str, weight: Any, reach: Reach) -> bool:
    """Do the logits depend on this weight?

    Weights in 4 bits have no gradient: there the module tells.
    """
    return name in reach.weights or (not weight.requires_grad and name.rpartition(".")[0] in reach.modules)


def _parents(name: str) -> Iterator[str]:
    """The modules around a weight, the outermost first."""
    parts = name.split(".")[:-1]
    return (".".join(parts[: end + 1]) for end in range(len(parts)))


def _listed(names: Collection[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(list(names)[:_NAMED]) + more
