"""A described cluster, in the names of GPU models that jobs here know."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from knowledge.catalogue.portal_catalogue import portal_catalogue
from knowledge.core.domain.catalogue.names import even
from scheduler.models import Gpu
from scheduler.simulator.errors import ClusterError
from scheduler.simulator.inputs.cluster import as_text, checked, parse_cluster


def described_cluster(text: str) -> str:
    """The description with the GPU models as the nodes here report them.

    Jobs have options on these alone, whatever else a cluster may offer. Raises ClusterError.
    """
    known = sorted(set(Gpu.objects.order_by().values_list("model", flat=True).distinct()))
    cluster = parse_cluster(text)
    if not known:
        return text
    pools = [replace(pool, gpu_model=_own_name(pool.gpu_model, known)) for pool in cluster.pools]
    return text if tuple(pools) == cluster.pools else as_text(checked(pools, "--cluster"))


def _own_name(given: str, known: Sequence[str]) -> str:
    """Return the one model that is meant.

    By its name, a name of the catalogue, or the beginning of its name. Raises ClusterError.
    """
    if given in known:
        return given
    same, catalogue = even(given), portal_catalogue()
    alike = [one for one in known if even(one) == same or catalogue.same_gpu(one, given)]
    alike = alike or [one for one in known if even(one).startswith(f"{same}-")]
    if len(alike) == 1:
        return alike[0]
    if alike:
        raise ClusterError(f"--cluster: {given} may be {' or '.join(alike)}; name one of them")
    raise ClusterError(f"--cluster: {given} is not a GPU model of these jobs; they have: {', '.join(known)}")
