"""Check a configuration that a person fixed.

Does it fit, and if not, which smallest change makes it fit?
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from knowledge.core.domain import config_space, tuning_support
from knowledge.core.domain.types import Option
from knowledge.core.domain.wording import in_sentence
from knowledge.core.explain.infeasible import SHORTEST
from knowledge.core.predict.base import MIN_P_VALID
from knowledge.core.recommend.submit_defaults import Request

SIZES = ("per_device_batch_size", "gradient_accumulation_steps")
# Values to let go of, smallest change first: how it runs, then on which GPUs.
RELEASES: tuple[tuple[str, ...], ...] = (
    SIZES,
    *((name,) for name in config_space.SETTINGS),
    (*SIZES, *config_space.SETTINGS),
)
PLACES = ("number_gpus", "number_nodes", "gpu_model")
NOT_AS_IT_IS = "The configuration does not fit as it is."

# The options of a request whose values are all settled, best first.
Answer = Callable[[Request], tuple[Option, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """The answer to whether a configuration fits.

    option: how it would run, after `changes` if there are any; None if nothing helps.
    changes: name to (from, to).
    """

    fits: bool
    option: Option | None
    changes: Mapping[str, tuple[Any, Any]]
    reason: str


def check(request: Request, answer: Answer) -> Check:
    """Try the request as it is, then ever larger changes of what the user fixed."""
    risky, tuning = None, str(request.fixed.get("tuning"))
    why = request.unloadable or tuning_support.explain_unsupported(request.pools, tuning)
    for fixed in _attempts(request):
        changed = {name: value for name, value in request.fixed.items() if fixed.get(name) != value}
        found = answer(replace(request, fixed=fixed))
        best = found[0] if found else None
        if best is not None and best.p_valid >= MIN_P_VALID:
            return _answered(best, _changes(changed, fixed, best), why or NOT_AS_IT_IS)
        if not changed:
            risky = best
    reason = f"{why} No single change makes it fit here.".strip()
    return Check(fits=False, option=risky, changes={}, reason=reason)


def _attempts(request: Request) -> Iterator[dict[str, Any]]:
    """Yield the fixed values as they are, then with ever larger parts changed.

    Fixed values are given up before any is changed.
    """
    fixed = dict(request.fixed)
    yield fixed
    for names in (*RELEASES, *_with_places()):
        if any(name in fixed for name in names):
            yield {name: value for name, value in fixed.items() if name not in names}
    anywhere = {name: value for name, value in fixed.items() if name not in (*RELEASES[-1], *PLACES)}
    if fixed.get("tuning") == "full":
        yield {**anywhere, "tuning": "lora"}
    if fixed.get("tuning") == "qlora":  # where no node can train it
        yield {**anywhere, "tuning": "lora", "quantization": "none"}
    length = fixed.get("tokens_per_sample", 0) // 2
    while length >= SHORTEST:
        yield {**fixed, "tokens_per_sample": length}
        length //= 2
    if fixed.get("tuning") in ("full", "lora") and fixed.get("quantization") in (None, "none"):
        yield {**anywhere, "tuning": "qlora", "quantization": "bnb-4bit"}


def _with_places() -> Iterator[tuple[str, ...]]:
    for count in range(1, len(PLACES) + 1):
        yield (*RELEASES[-1], *PLACES[:count])


def _changes(
    changed: Mapping[str, Any], fixed: Mapping[str, Any], option: Option
) -> dict[str, tuple[Any, Any]]:
    """(from, to) of every fixed value that the option does not keep."""
    now = {name: fixed.get(name, getattr(option.config, name, None)) for name in changed}
    return {name: (value, now[name]) for name, value in changed.items() if now[name] != value}


def _answered(option: Option, changes: Mapping[str, tuple[Any, Any]], why_not: str) -> Check:
    if not changes:
        reason = f"It fits: its chance to run is {option.p_valid:.0%}."
        return Check(fits=True, option=option, changes={}, reason=reason)
    words = ", ".join(
        f"{in_sentence(name)} {_shown(old)} → {_shown(new)}" for name, (old, new) in changes.items()
    )
    reason = f"{why_not} With {words}, its chance to run is {option.p_valid:.0%}."
    return Check(fits=False, option=option, changes=dict(changes), reason=reason)


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return "left open" if value is None else f"{value}"
