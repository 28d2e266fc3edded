"""Print a recommendation, as the API gives it."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from knowledge import advice
from knowledge.core import catalog
from knowledge.core.types import Advice, Goal, Inventory, Pool, Workload
from knowledge.told import advice_json
from trainer.recipes import RECIPES, ParamError

EXAMPLE = (
    '{"model": "llama3.1-8b", "params": {"method": "lora"}, "goal": "balanced",'
    ' "workload": {"rows": 5000, "lengths": [[512, 5000]]},'
    ' "inventory": [{"gpu_model": "A100-SXM4-80GB", "node_sizes": [8], "price_per_gpu_hour": 2.0}]}'
)


class Command(BaseCommand):
    help = f"Print a recommendation. Example: --json '{EXAMPLE}'"

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", required=True, metavar="REQUEST")

    def handle(self, **options: Any) -> None:
        try:
            request = json.loads(options["json"])
            found = _advise(request, _inventory(request))
        except (ParamError, catalog.UnknownName, advice.AdviceFailed) as wrong:
            raise CommandError(str(wrong)) from wrong
        except (ValueError, TypeError, KeyError, AttributeError) as wrong:
            raise CommandError(f"The request cannot be read ({wrong!r}). Example: {EXAMPLE}") from wrong
        told = {**advice_json(found), "bound": found.bound}
        self.stdout.write(json.dumps(told, indent=1))


def _inventory(request: Mapping[str, Any]) -> Inventory:
    pools = tuple(_pool(pool) for pool in request.get("inventory", ()))
    return Inventory(pools=pools, max_nodes=int(request.get("max_nodes", 1)))


def _advise(request: Mapping[str, Any], stock: Inventory) -> Advice:
    return advice.advise(
        model=request["model"],
        fixed=RECIPES["sft"].clean(request.get("params", {})),
        workload=_workload(request.get("workload", {"rows": 1000, "lengths": [[512, 1000]]})),
        inventory=stock,
        goal=Goal(request.get("goal", Goal.BALANCED)),
        deadline_s=request.get("deadline_s"),
        budget=request.get("budget"),
    )


def _workload(raw: Mapping[str, Any]) -> Workload:
    lengths = tuple((int(length), int(rows)) for length, rows in sorted(raw["lengths"]))
    return Workload(
        rows=int(raw["rows"]), lengths=lengths, validation_rows=int(raw.get("validation_rows", 0))
    )


def _pool(raw: Mapping[str, Any]) -> Pool:
    """A pool as in the example; memory is the data sheet's unless it is given."""
    gpu = catalog.gpu(raw["gpu_model"])
    values = {
        **raw,
        "gpu_model": gpu.gpu_model,
        "node_sizes": tuple(raw["node_sizes"]),
        "memory_bytes": int(raw.get("memory_bytes", gpu.memory_bytes)),
    }
    return Pool(**values)
