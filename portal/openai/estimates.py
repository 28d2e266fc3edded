"""Beside the contract: what a job would take, for the body that would make it."""

from __future__ import annotations

from typing import Any

from rest_framework.response import Response

from knowledge.recommendations.recommendation_json import recommendation_json
from portal.accounts.requests import ApiRequest
from portal.api.knowledge.recommendations import RecommendedOut
from portal.clock import database_now
from portal.openai.job_object import hyperparameters
from portal.openai.job_request import in_words_of_the_contract, job_terms
from portal.openai.views import OpenAIView
from scheduler.core.job_terms import wants_spot
from scheduler.services.jobs.recommend import USED, current_recommender, recommend


class EstimatesView(OpenAIView):
    def post(self, request: ApiRequest) -> Response:
        """Each value of the job with its reason, and its time, memory and cost.

        Nothing is stored.
        """
        terms = job_terms(user=request.user, body=request.data, team=self.team)
        asked: dict[str, Any] = {name: terms[name] for name in USED if name in terms}
        recommender = current_recommender(spot=wants_spot(terms))
        with in_words_of_the_contract():
            found = recommend(recommender=recommender, now=database_now(), **asked)
        model, rows = terms["model"], terms["training_file"].rows
        return Response(
            {
                "object": "fine_tuning.estimate",
                "model": model,
                "training_file": terms["training_file"].pk,
                "hyperparameters": hyperparameters(model, found.bound, rows),
                "portal": RecommendedOut(recommendation_json(found)).data,
            }
        )
