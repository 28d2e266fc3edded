"""Nodes that a job avoids: they neither hold its model nor may download it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from knowledge.core.domain.model_support import named
from knowledge.core.domain.offline_node import is_downloaded
from scheduler.loop.declines import Avoided
from scheduler.loop.options.option_cache import JobOptions
from scheduler.models import Gpu
from scheduler.selectors.jobs import JobColumns
from scheduler.states import IN_SERVICE


@dataclass(slots=True)
class _Lacking:
    """The nodes that cannot load a model.

    names: of those in service, by GPU model.
    """

    nodes: set[str] = field(default_factory=set)
    names: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))


def with_offline_nodes(
    avoided: Mapping[str, Avoided], jobs: Sequence[JobColumns], options: Mapping[str, JobOptions]
) -> Mapping[str, Avoided]:
    """Return what jobs avoid, such nodes included.

    Nodes that offer a GPU of its options are named.
    """
    asking = [job for job in jobs if is_downloaded(job.model)]
    lacking = _lacking({job.model for job in asking})
    if not lacking:
        return avoided
    found = dict(avoided)
    for job in asking:
        if away := lacking.get(job.model):
            known, gpus = found.get(job.pk, Avoided()), {one.gpu_model for one in options[job.pk].options}
            names = sorted({name for gpu in gpus & away.names.keys() for name in away.names[gpu]})
            text = f"{named(names)} cannot load {job.model}." if names else ""
            found[job.pk] = Avoided(known.nodes | away.nodes, " ".join(filter(None, (known.text, text))))
    return found


def _lacking(models: set[str]) -> dict[str, _Lacking]:
    """The nodes that lack a model, by model that is not everywhere."""
    found: dict[str, _Lacking] = defaultdict(_Lacking)
    if not models:
        return found
    columns = ("node_id", "node__name", "node__state", "model", "node__held_models")
    offline = Gpu.present.filter(node__held_models__isnull=False).order_by()
    for node, name, state, gpu_model, held in offline.filter(index=0).values_list(*columns):
        for model in models.difference(held):
            found[model].nodes.add(node)
            if state in IN_SERVICE:
                found[model].names[gpu_model].add(name)
    return found
