"""Recommendations, checks and options for dispatch.

One predictor answers for one request.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from django.conf import settings

from knowledge import selectors
from knowledge.catalogue.portal_catalogue import catalogue_version, portal_catalogue, with_folders
from knowledge.core.domain.catalogue import Catalogue, UnknownModel
from knowledge.core.domain.types import (
    Config,
    Goal,
    GpuPool,
    Inventory,
    Option,
    Recommendation,
    Source,
    Workload,
)
from knowledge.core.evaluate import experiment_design
from knowledge.core.evaluate.cross_validation import LeaveOneOutErrors, leave_one_out_errors
from knowledge.core.explain import explanations, feasibility
from knowledge.core.explain.feasibility import Check
from knowledge.core.explain.memory_savings import memory_savings
from knowledge.core.explain.trade import trade
from knowledge.core.predict.memory_parts import memory_parts
from knowledge.core.predict.predictor import LearnedPredictor
from knowledge.core.recommend import borrowed_facts, defaults, objectives
from knowledge.core.recommend.search import Search, values
from knowledge.core.recommend.submit_defaults import Request, choose_submit_values
from knowledge.models import Execution
from knowledge.predictors.loaded_predictor import predictor_before, predictor_for
from knowledge.selectors import KnowledgeState
from trainer.recipes import DEFAULT_RECIPE

log = logging.getLogger(__name__)


def _told(options: tuple[Option, ...], request: Request) -> tuple[Option, ...]:
    """The options as they are told: those from borrowed facts are less sure."""
    return borrowed_facts.widened(options) if request.lender else options


class RecommendationFailed(RuntimeError):
    """A recommendation could not be made; a submission goes on with stated defaults."""


@contextmanager
def _edge(what: str) -> Iterator[None]:
    """Turn an unforeseen error into RecommendationFailed.

    That error never blocks a submission.
    """
    try:
        yield
    except (UnknownModel, RecommendationFailed):
        raise
    except Exception as error:
        log.exception("recommendation failed", extra={"asked": what})
        raise RecommendationFailed(f"{what} failed: {error}") from error


@dataclass(frozen=True, kw_only=True)
class Recommender:
    """One predictor with its start-ups, catalogue and inventory.

    It is made once a request, so that all answers agree.

    version: changes when options should be computed anew, with the active predictor and with what was added
    to the catalogue. Predictor and start-ups are read when first needed: a request that fails on them goes on
    with stated defaults, which need neither.
    """

    inventory: Inventory
    catalogue: Catalogue
    state: KnowledgeState
    version: str

    @classmethod
    def of(cls, inventory: Inventory) -> Recommender:
        """Return a recommender with the predictor that is active now."""
        state, added = selectors.state(), catalogue_version()
        active = "prior" if state.number is None else str(state.number)
        return cls(
            inventory=inventory,
            catalogue=portal_catalogue(),
            state=state,
            version=active + (f"+{added}" if added else ""),
        )

    @cached_property
    def predictor(self) -> LearnedPredictor:
        """The predictor behind all figures."""
        return predictor_for(self.state, self.catalogue, self.inventory)

    @cached_property
    def _search(self) -> Search:
        return Search(predictor=self.predictor, startups=selectors.startups(self.catalogue))

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
        recipe: str = DEFAULT_RECIPE.name,
    ) -> Recommendation:
        """Recommend a whole configuration for the model and data.

        Every value comes with its reason, and options for dispatch are included. Options within
        `deadline_s` seconds and `budget` come first, whatever the goal. `fixed` holds the values
        that the user set, already cleaned by `Recipe.clean`; none of them ever changes. Raises
        UnknownModel (with suggestions) for a plain name that is no model, RecommendationFailed for
        the unexpected.
        """
        request = self._request(model, fixed, workload, recipe)
        choices, found = self._search.choose(request)
        found = objectives.ranked(_told(found, request), goal, deadline_s, budget)
        bound = values(choices)
        best = found[0] if found else None
        return Recommendation(
            bound=bound,
            chosen=choices | explanations.dispatch_choices(request, found),
            options=found,
            evidence=selectors.nearest(best.config, request.catalogue) if best and request.model else (),
            predictor_version=self.predictor.version,
            notes=(
                *explanations.notes(request, bound, found, self._search.space),
                *explanations.cut(request),
                *explanations.missed(found, deadline_s, budget, settings.CURRENCY),
                *explanations.unpriced(found, goal),
            ),
            pareto=tuple(dict.fromkeys(option.key for option in objectives.pareto(found))),
            **self._memory(best, request),
            trade=trade(found),
        )

    @_edge("check")
    def check(
        self,
        *,
        model: str,
        fixed: Mapping[str, Any],
        workload: Workload,
        recipe: str = DEFAULT_RECIPE.name,
    ) -> Check:
        """Check whether the configuration that the user fixed fits.

        If it does not, find the smallest change that makes it fit. The effective batch is kept.
        Raises as `recommend`.
        """
        request = self._request(model, fixed, workload, recipe)
        choices, _ = self._search.choose(request)
        batch = choices["effective_batch_size"].value
        whole = replace(request, fixed={**fixed, "effective_batch_size": batch})
        return feasibility.check(whole, lambda one: _told(self._search.choose(one)[1], one))

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
        recipe: str = DEFAULT_RECIPE.name,
    ) -> tuple[Option, ...]:
        """Return the options of a job whose submission settled `bound`.

        There is at most one per bundle, ranked by the goal.

        less_memory_than: set after running out of memory; keeps only options predicted to need
        fewer bytes of a GPU.
        """
        request = self._request(model, fixed, workload, recipe)
        if less_memory_than is None:
            found = self._search.options(request, bound)
        else:
            found = self._search.predicted(request, bound, less_memory_than)
        return objectives.ranked(_told(found, request), goal, deadline_s, budget)

    def default_options(
        self,
        *,
        model: str,
        bound: Mapping[str, Any],
        fixed: Mapping[str, Any],
        workload: Workload,
        recipe: str = DEFAULT_RECIPE.name,
    ) -> tuple[Option, ...]:
        """Return one option of stated defaults per bundle.

        Nothing is predicted (`Source.DEFAULT`, values of 0).
        """
        return defaults.default_options(self._unpredicted(model, fixed, workload, recipe), bound)

    def default_recommendation(
        self,
        *,
        model: str,
        fixed: Mapping[str, Any],
        workload: Workload,
        recipe: str = DEFAULT_RECIPE.name,
    ) -> Recommendation:
        """Return the recommendation of stated defaults.

        It is for a submission for which no recommendation could be made.
        """
        request = self._unpredicted(model, fixed, workload, recipe)
        choices = choose_submit_values(request)
        bound = values(choices)
        found = defaults.default_options(request, bound)
        return Recommendation(
            bound=bound,
            chosen=choices | explanations.dispatch_choices(request, found),
            options=found,
            notes=(
                "No recommendation is available; these are default settings without a prediction.",
                *explanations.cut(request),
            ),
        )

    @_edge("informative")
    def informative(
        self, *, models: Sequence[str], pool: GpuPool, count: int, longest_s: float
    ) -> list[Config]:
        """Return the runs on one GPU of the pool that would teach most, best first.

        A step takes at most `longest_s`. Raises UnknownModel.
        """
        catalogue = with_folders(self.predictor.catalogue, models)
        for model in models:
            catalogue.model(model)
        found = experiment_design.candidates(models, pool, catalogue)
        predictor = replace(self.predictor, catalogue=catalogue)
        return experiment_design.choose_experiments(found, predictor, count, longest_s)

    @_edge("judge")
    def judged(self, runs: Sequence[Execution]) -> LeaveOneOutErrors:
        """Return errors of the rate of own measured runs.

        Each run is predicted once from none of them and once from the others. The predictor is the
        version that answered before the first of them was recorded, since a later one has learnt
        from some.
        """
        mine = {run.pk for run in runs}
        known = selectors.own_runs(up_to=self.state.last_own)
        catalogue = with_folders(self.catalogue, (run.model_name for run in (*runs, *known)))
        predictor = predictor_before(min(mine), catalogue, self.inventory)
        others = [run.row for run in known if run.pk not in mine and run.gpu_model == runs[0].gpu_model]
        return leave_one_out_errors(predictor, others, [run.row for run in runs])

    def _request(self, model: str, fixed: Mapping[str, Any], data: Workload, recipe: str) -> Request:
        """Build the request of a model, the fixed values and the data.

        Local directories and hub ids may be outside the catalogue; a plain name may not. Those that state
        their size borrow the facts of the nearest model.
        """
        known = self._knowing(model)
        if "/" not in model:
            return Request(model, known.model(model), fixed, data, self.inventory, known, recipe=recipe)
        if lender := borrowed_facts.stand_in(model, known):
            known = borrowed_facts.with_borrowed(known, model, lender)
        return Request(model, known.known_model(model), fixed, data, self.inventory, known, lender, recipe)

    def _unpredicted(self, model: str, fixed: Mapping[str, Any], data: Workload, recipe: str) -> Request:
        """The request as if nothing were known of the model's speed and memory."""
        return Request(model, None, fixed, data, self.inventory, self._knowing(model), recipe=recipe)

    def _knowing(self, *models: str) -> Catalogue:
        """Return the catalogue with the GPUs of these nodes.

        It also has the models in folders among those named.
        """
        return with_folders(self.catalogue, models).on(self.inventory)

    def _memory(self, best: Option | None, request: Request) -> dict[str, Any]:
        """The parts of a recommendation that say where its first option's memory goes."""
        if best is None or best.source is Source.DEFAULT:
            return {}
        known, catalogue = self.predictor.knowledge, request.catalogue
        return {
            "memory_parts": memory_parts(best, known, catalogue),
            "memory_savings": memory_savings(best, known, catalogue, request.pools),
        }
