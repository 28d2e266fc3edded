"""The real processes of a portal on loopback.

PostgreSQL, broker, web server, workers, beat, and nodes behind a proxy each.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping

from portal.ops.launch.processes import worker
from tests.chaos.proxy import Proxies
from tests.harness.servers import Postgres
from tests.harness.stack import Stack

NODES = ("alpha", "beta", "gamma", "delta")
SLOTS = {"alpha": 2}  # others have one
NEWCOMER = "newcomer"  # joins while things break, if the plan says so
LIAR = "liar"  # so does this one, and is removed afterwards
COMMON = {"RATE_LIMIT": "100000/min", "CHECKPOINT_EVERY_S": "0.5", "SWEEP_EVERY_S": "5", "LOG_LEVEL": "INFO"}
LEASE_15 = {
    "NODE_SUSPECT_S": "10",
    "NODE_LOST_S": "15",
    "NODE_BLOCKED_S": "20",
    "DECLINE_BACKOFF_S": "2",
    "NODE_STOPS_S": "60",
    "ASSIGNED_TIMEOUT_S": "20",
    "STARTING_TIMEOUT_S": "120",
    "STOP_GRACE_S": "15",
}
SETTINGS: Mapping[str, Mapping[str, str]] = {"15": LEASE_15, "production": {}}
LEASE_S = {"15": 15.0, "production": 90.0}


class Cluster:
    """The processes that faults strike.

    Only the main thread starts and ends processes (portal.ops.launch.supervisor).
    """

    def __init__(self, *, lease: str, control_workers: int) -> None:
        self.lease_s = LEASE_S[lease]
        self.control = tuple("control" if n == 0 else f"control-{n + 1}" for n in range(control_workers))
        self.postgres = Postgres()
        self.stack = Stack(database_url=self.postgres.url, leases={**COMMON, **SETTINGS[lease]})
        self.proxies = Proxies(self.stack.port, (*NODES, NEWCOMER))
        self.nodes = list[str]()

    def start(self) -> None:
        self.stack.start()
        for name in self.control[1:]:
            self.stack.supervisor.start(worker("control", name))
        for name in NODES:
            self.add_node(name)
        for name in NODES:
            self.stack.client.wait_for_node(name)

    def add_node(self, name: str) -> None:
        """Start a node's agent for the first time; once it has been, nothing happens."""
        if name not in self.nodes:
            self.nodes.append(name)
            self.stack.launch_agent(name, SLOTS.get(name, 1), portal=self.proxies[name].url)

    def stop(self) -> None:
        self.stack.stop()
        self.proxies.stop()
        self.postgres.remove()

    @staticmethod
    def process(target: str) -> str:
        """The supervisor's name of a target: workers are told by their queue."""
        return f"worker-{target}" if target.startswith(("control", "work")) else target


@contextlib.contextmanager
def running(cluster: Cluster) -> Iterator[Cluster]:
    """The cluster while it is used, and nothing of it afterwards."""
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()
