"""What a recipe is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from itertools import islice
from typing import Any

from trainer.recipes.common import LOOP_CONSTANTS, TrainingSettings, launch_conflicts
from trainer.recipes.params import Binds, Constant, Param, ParamError
from trainer.written import strange_names

MAX_ERRORS = 20
# Values of a submission that a checkpoint's identity states by what follows from them: the rows of a
# step, the number of steps, the tuning.
STATED_OTHERWISE = frozenset({"effective_batch_size", "epochs", "max_steps", "quantization"})


class Output(StrEnum):
    """What a training leaves."""

    MODEL = "model"  # an adapter, or all weights
    HEAD = "head"  # the same with a head of its own
    FILES = "files"


class Resume(StrEnum):
    """What a training that was stopped goes on from."""

    EXACT = "exact"  # it ends as if it had never stopped
    FROM_CHECKPOINT = "from checkpoint"
    NONE = "none"  # it begins anew


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """The coefficients of a recipe's terms in time and memory.

    Their formulas are in knowledge. sequences: of one row. forwards: further passes of each, without
    gradients.
    """

    sequences: int = 1
    forwards: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """One kind of training.

    label, help: for people. entry: the module of the trainer; it is never imported here. formats: of
    `trainer.formats` that its rows may have. needs: packages beyond those of every node. metrics: beyond the
    loss, in `trainer.step_metrics`. tasks: what other trainers' files call it. settings: its parameters as
    the training process takes them. conflicts: of values that do not go together, the faults and remedies by
    parameter.
    """

    name: str
    label: str
    help: str
    entry: str
    params: Mapping[str, Param]
    formats: tuple[str, ...]
    output: Output = Output.MODEL
    resume: Resume = Resume.EXACT
    needs: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    cost: Cost = Cost()
    constants: Mapping[str, Constant] = field(default_factory=lambda: LOOP_CONSTANTS)
    settings: type[TrainingSettings] = TrainingSettings
    conflicts: Callable[[Mapping[str, Any]], dict[str, str]] = launch_conflicts

    def clean(self, raw: Mapping[str, Any]) -> dict[str, Any]:
        """Return the given values, checked one by one and against each other.

        Absent ones stay absent. A value of None counts as not given. Raises ParamError naming
        the wrong fields, the first 20 of many.
        """
        strange = (name[:50] for name in raw if name not in self.params)
        errors = strange_names(islice(strange, MAX_ERRORS), self.params, "is not a parameter")
        values: dict[str, Any] = {}
        for name, value in raw.items():
            if name in self.params and value is not None:
                try:
                    values[name] = self.params[name].clean(value)
                except ValueError as wrong:
                    errors[name] = str(wrong)
            if len(errors) >= MAX_ERRORS:
                break
        errors = errors or self.conflicts(values)
        if errors:
            raise ParamError(errors)
        return values

    def binding(self, when: Binds) -> tuple[str, ...]:
        """The names of the parameters that are settled at `when`."""
        return tuple(name for name, param in self.params.items() if param.binds is when)

    def settings_of(self, params: Mapping[str, Any]) -> TrainingSettings:
        """Return the parameters as the portal resolved them.

        Absent ones get their default. Raises ParamError naming the first wrong one.
        """
        values = {one.name: self._cleaned(one.name, params.get(one.name)) for one in fields(self.settings)}
        if params.get("effective_batch_size") is None:
            values["effective_batch_size"] = None
        return self.settings(**values)

    def _cleaned(self, name: str, value: Any) -> Any:
        param = self.params[name]
        if value is None:
            return param.default
        try:
            return param.clean(value)
        except ValueError as wrong:
            raise ParamError({name: str(wrong)}) from wrong

    def identity(self, settings: TrainingSettings) -> dict[str, Any]:
        """The values that decide what is learnt: a checkpoint of others is not resumed."""
        names = (name for name in self.binding(Binds.SUBMIT) if name not in STATED_OTHERWISE)
        return {"recipe": self.name, **{name: getattr(settings, name) for name in names}}
