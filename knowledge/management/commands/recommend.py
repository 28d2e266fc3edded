"""Print a recommendation, as the API gives it."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from knowledge.core.domain import catalogue
from knowledge.recommendations import recommendation_request
from knowledge.recommendations.recommendation_json import recommendation_json
from knowledge.recommendations.recommender import RecommendationFailed, Recommender
from trainer.recipes import ParamError

EXAMPLE = (
    '{"model": "llama3.1-8b", "params": {"tuning": "lora"}, "goal": "balanced",'
    ' "workload": {"rows": 5000, "lengths": [[512, 5000]]},'
    ' "inventory": [{"gpu_model": "A100-SXM4-80GB", "node_sizes": [8], "price_per_gpu_hour": 2.0}]}'
)


class Command(BaseCommand):
    help = f"Print a recommendation. Example: --json '{EXAMPLE}'"

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", required=True, metavar="REQUEST")

    def handle(self, **options: Any) -> None:
        try:
            request = recommendation_request.read(json.loads(options["json"]))
            found = Recommender.of(request.inventory).recommend(
                model=request.model,
                fixed=request.fixed,
                recipe=request.recipe,
                workload=request.workload,
                goal=request.goal,
                deadline_s=request.deadline_s,
                budget=request.budget,
            )
        except json.JSONDecodeError as wrong:
            raise CommandError(f"The request is no JSON: {wrong}. Example: {EXAMPLE}") from wrong
        except recommendation_request.BadRequest as wrong:
            raise CommandError(f"{wrong}. Example: {EXAMPLE}") from wrong
        except (ParamError, catalogue.UnknownName, RecommendationFailed) as wrong:
            raise CommandError(str(wrong)) from wrong
        content = {**recommendation_json(found), "bound": found.bound}
        self.stdout.write(json.dumps(content, indent=1))
