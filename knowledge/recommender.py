"""Recommendations, checks and options for dispatch, by one predictor for one request."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from knowledge import catalogue_entries, selectors
from knowledge.core.analytic.config_table import hardware
from knowledge.core.domain import catalogue
from knowledge.core.domain.types import Advice, Config, Goal, GpuPool, Inventory, Option, Source, Workload
from knowledge.core.evaluate import experiment_design
from knowledge.core.evaluate.cross_validation import LeaveOneOutErrors, leave_one_out_errors
from knowledge.core.explain import explanations, feasibility
from knowledge.core.explain.feasibility import Check
from knowledge.core.predict.memory_parts import memory_parts
from knowledge.core.predict.predictor import LearnedPredictor
from knowledge.core.recommend import defaults, objectives
from knowledge.core.recommend.search import Search, values
from knowledge.core.recommend.submit_defaults import Request, choose_submit_values
from knowledge.loaded_predictor import predictor_before, predictor_for
from knowledge.models import Execution
from knowledge.selectors import KnowledgeState

log = logging.getLogger(__name__)


class AdviceFailed(RuntimeError):
    """Advice could not be made; a submission goes on with stated defaults."""


@contextmanager
def _edge(what: str) -> Iterator[None]:
    """Turn an unforeseen error into AdviceFailed: advice that fails never blocks a submission."""
    try:
        yield
    except (catalogue.UnknownModel, AdviceFailed):
        raise
    except Exception as error:
        log.exception("advice failed", extra={"asked": what})
        raise AdviceFailed(f"{what} failed: {error}") from error


@dataclass(frozen=True, kw_only=True)
class Recommender:
    """One predictor, its start-ups and one inventory; made once a request, so that all answers agree.

    version: changes when options should be computed anew, with the active predictor and with what was added
    to the catalogue. Predictor and start-ups are read when first needed: a request that fails on them goes on
    with stated defaults, which need neither.
    """

    inventory: Inventory
    state: KnowledgeState
    version: str

    @classmethod
    def of(cls, inventory: Inventory) -> Recommender:
        """By the predictor that is active now."""
        state, added = selectors.state(), catalogue_entries.version()
        active = "prior" if state.number is None else str(state.number)
        return cls(inventory=inventory, state=state, version=active + (f"+{added}" if added else ""))

    @cached_property
    def predictor(self) -> LearnedPredictor:
        """The predictor behind all figures."""
        return predictor_for(self.state, hardware(self.inventory))

    @cached_property
    def _search(self) -> Search:
        return Search(predictor=self.predictor, startups=selectors.startups())

    @_edge("recommend")
    def recommend(
        self,
        *,
        model: str,
        fixed: Mapping[str, Any],
        workload: Workload,
        goal: Goal = Goal.BALANCED,
        deadline_s: float | None = None,
        budget: float | None = None,
    ) -> Advice:
        """A whole configuration for the model and data, with every value's reason, and options for dispatch.

        Options within `deadline_s` seconds and `budget` come first, whatever the goal. `fixed` holds what the
        user set, already cleaned by `Recipe.clean`; none of it ever changes. Raises UnknownModel (with
        suggestions) for a plain name that is no model, AdviceFailed for the unexpected.
        """
        request = self._request(model, fixed, workload)
        choices, found = self._search.settled(request)
        found = objectives.ranked(found, goal, deadline_s, budget)
        bound = values(choices)
        best = found[0] if found else None
        return Advice(
            bound=bound,
            chosen=choices | explanations.dispatch_choices(request, found),
            options=found,
            evidence=selectors.nearest(best.config) if best and request.model else (),
            predictor_version=self.predictor.version,
            notes=(
                *explanations.notes(request, bound, found, self._search.space),
                *explanations.missed(found, deadline_s, budget),
                *explanations.unpriced(found, goal),
            ),
            pareto=tuple(option.key for option in objectives.pareto(found)),
            memory_parts=self._memory_parts(best),
        )

    @_edge("check")
    def check(self, *, model: str, fixed: Mapping[str, Any], workload: Workload) -> Check:
        """Does the configuration that the user fixed fit, and if not, what is the smallest change that does?

        The effective batch is kept. Raises as `recommend`.
        """
        request = self._request(model, fixed, workload)
        choices, _ = self._search.settled(request)
        batch = choices["effective_batch_size"].value
        whole = replace(request, fixed={**fixed, "effective_batch_size": batch})
        return feasibility.check(whole, lambda one: self._search.settled(one)[1])

    @_edge("options")
    def options(
        self,
        *,
        model: str,
        bound: Mapping[str, Any],
        fixed: Mapping[str, Any],
        workload: Workload,
        goal: Goal = Goal.BALANCED,
        deadline_s: float | None = None,
        budget: float | None = None,
        less_memory_than: float | None = None,
    ) -> tuple[Option, ...]:
        """The options of a job whose submission settled `bound`, at most one a bundle, ranked by the goal.

        After running out of memory: `less_memory_than` keeps only those predicted to need fewer bytes a GPU.
        """
        request = self._request(model, fixed, workload)
        if less_memory_than is None:
            found = self._search.options(request, bound)
        else:
            found = self._search.predicted(request, bound, less_memory_than)
        return objectives.ranked(found, goal, deadline_s, budget)

    def default_options(
        self, *, model: str, bound: Mapping[str, Any], fixed: Mapping[str, Any], workload: Workload
    ) -> tuple[Option, ...]:
        """One option of stated defaults per bundle; nothing is predicted (`Source.DEFAULT`, values of 0)."""
        return defaults.default_options(Request(model, None, fixed, workload, self.inventory), bound)

    def default_advice(self, *, model: str, fixed: Mapping[str, Any], workload: Workload) -> Advice:
        """The advice of stated defaults, for a submission whose advice failed."""
        request = Request(model, None, fixed, workload, self.inventory)
        choices = choose_submit_values(request)
        bound = values(choices)
        found = defaults.default_options(request, bound)
        return Advice(
            bound=bound,
            chosen=choices | explanations.dispatch_choices(request, found),
            options=found,
            notes=("Advice was not available; these are stated defaults and nothing is predicted.",),
        )

    @_edge("informative")
    def informative(
        self, *, models: Sequence[str], pool: GpuPool, count: int, longest_s: float
    ) -> list[Config]:
        """The runs on one GPU of the pool that would teach most, best first, a step within `longest_s`.

        Raises UnknownModel.
        """
        for model in models:
            catalogue.model(model)
        found = experiment_design.candidates(models, pool)
        return experiment_design.choose_experiments(found, self.predictor, count, longest_s)

    @_edge("judge")
    def judged(self, runs: Sequence[Execution]) -> LeaveOneOutErrors:
        """Errors of the rate of own measured runs: foretold from none of them, and each from its others.

        By the version that answered before the first of them was recorded: a later one has learnt from some.
        """
        mine = {run.pk for run in runs}
        predictor = predictor_before(min(mine), hardware(self.inventory))
        known = selectors.own_runs(up_to=self.state.last_own)
        others = [run.row for run in known if run.pk not in mine and run.gpu_model == runs[0].gpu_model]
        return leave_one_out_errors(predictor, others, [run.row for run in runs])

    def _request(self, model: str, fixed: Mapping[str, Any], data: Workload) -> Request:
        """Local directories and hub ids may be outside the catalogue; a plain name may not."""
        try:
            return Request(model, catalogue.model(model), fixed, data, self.inventory)
        except catalogue.UnknownModel:
            if "/" in model:
                return Request(model, None, fixed, data, self.inventory)
            raise

    def _memory_parts(self, best: Option | None) -> dict[str, float]:
        if best is None or best.source is Source.DEFAULT:
            return {}
        return memory_parts(best, self.predictor.knowledge, self.predictor.here)
