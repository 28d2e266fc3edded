"""Requested simulations, and the present cluster as the simulator reads it."""

from __future__ import annotations

from collections import defaultdict

from django.db.models import Count, F, QuerySet

from scheduler.errors import NotFound
from scheduler.models import Gpu, Simulation
from scheduler.simulator.inputs.cluster import Cluster, NodeGroup, as_text
from scheduler.simulator.world.predictions import Fidelity
from scheduler.states import SimulationState

LOOKED_AT = 10  # of the newest simulations, for one that compares


def all_simulations() -> QuerySet[Simulation]:
    """Newest first, with who asked for them."""
    return Simulation.objects.select_related("requested_by").order_by("-id")


def newest_comparison() -> Simulation | None:
    """The newest comparison of policies on the nodes of that time.

    It knew what was promised to each job.
    """
    told = Simulation.objects.filter(
        state=SimulationState.DONE, as_it_was=True, knowledge=Fidelity.PERFORMANCE
    )
    newest = told.order_by("-requested_at", "-id")[:LOOKED_AT]
    return next((one for one in newest if len(one.results) > 1), None)


def get_simulation(simulation_id: str) -> Simulation:
    """Raises NotFound."""
    found = all_simulations().filter(pk=simulation_id).first()
    if found is None:
        raise NotFound(f"There is no simulation {simulation_id[:50]}.")
    return found


def present_cluster() -> str:
    """Return the registered nodes in the words of `--cluster`, in one query.

    It is empty without nodes. A GPU model has one price there, so nodes of different prices
    count with their mean price.
    """
    nodes = (
        Gpu.present.values("node_id", "model", price=F("node__price_per_gpu_hour"))
        .annotate(gpus=Count("pk"))
        .order_by("model", "-gpus")
    )
    sizes: dict[str, list[int]] = defaultdict(list)
    spent: dict[str, float] = defaultdict(float)
    for node in nodes:
        sizes[node["model"]].append(node["gpus"])
        spent[node["model"]] += node["gpus"] * node["price"]
    pools = [
        NodeGroup(model, found.count(size), size, spent[model] / sum(found))
        for model, found in sizes.items()
        for size in dict.fromkeys(found)
    ]
    return as_text(Cluster(tuple(pools))) if pools else ""
