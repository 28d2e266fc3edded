"""One search for many requests that differ in nothing which it looks at."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from knowledge.core.domain.types import Recommendation, Workload
from knowledge.core.recommend.submit_defaults import INDEPENDENT, user_choice
from knowledge.recommendations.recommender import Recommender


@dataclass(frozen=True, kw_only=True)
class AlikeRecommender(Recommender):
    """Remembers recommendations; values that nothing depends on are put into them."""

    known: dict[str, Recommendation] = field(default_factory=dict)

    def recommend(
        self, *, model: str, fixed: Mapping[str, Any], workload: Workload, **limits: Any
    ) -> Recommendation:
        """Recommend as a Recommender does."""
        own = {name: value for name, value in fixed.items() if name in INDEPENDENT}
        others = {name: value for name, value in fixed.items() if name not in INDEPENDENT}
        alike = json.dumps([model, others, sorted(own), limits], sort_keys=True, default=repr) + repr(
            workload
        )
        if alike not in self.known:
            self.known[alike] = super().recommend(model=model, fixed=fixed, workload=workload, **limits)
        found = self.known[alike]
        chosen = {name: user_choice(value) for name, value in own.items()}
        return replace(found, bound={**found.bound, **own}, chosen={**found.chosen, **chosen})
