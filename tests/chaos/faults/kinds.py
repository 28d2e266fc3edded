"""The table of all faults: their targets, frequency, duration and means."""

from __future__ import annotations

from tests.chaos.faults import content, liar, machines, processes, servers
from tests.chaos.plan import Kind

MOMENT, SHORT, SOME = (0.0, 0.0), (0.2, 4.0), (3.0, 12.0)
BELOW, BEYOND = (0.4, 0.9), (1.2, 1.6)  # of a lease

KINDS = (
    Kind("web killed", "web", 3, SHORT, processes.killed),
    Kind("web away, less than a lease", "web", 2, BELOW, processes.killed, leases=True),
    Kind("web away, more than a lease", "web", 1, BEYOND, processes.killed, leases=True),
    Kind("web paused", "web", 2, SOME, processes.paused),
    Kind("web replaced", "web", 1, SHORT, processes.replaced),
    Kind("web's clock a day ahead", "web", 1, SOME, machines.clock_ahead),
    Kind("web's clock 90 s behind", "web", 1, SOME, machines.clock_behind),
    Kind("portal's disk full", "web", 1, SOME, machines.disk_full, always=True),
    Kind("scheduler killed", "control", 3, SHORT, processes.killed),
    Kind("scheduler paused", "control", 2, (2.0, 15.0), processes.paused),
    Kind("scheduler replaced", "control", 1, SHORT, processes.replaced),
    Kind("scheduler's clock a day ahead", "control", 1, SOME, machines.clock_ahead),
    Kind("worker killed", "work", 1, SHORT, processes.killed),
    Kind("beat killed", "beat", 1, SHORT, processes.killed),
    Kind("beat paused", "beat", 1, SOME, processes.paused),
    Kind("broker killed", "broker", 2, SHORT, servers.broker_killed),
    Kind("broker emptied", "broker", 1, MOMENT, servers.broker_emptied),
    Kind("broker stalled", "broker", 2, SOME, processes.paused),
    Kind("database away", "database", 2, (0.5, 8.0), servers.database_away),
    Kind("database stalled", "database", 2, SOME, servers.database_stalled),
    Kind("database locked", "database", 2, SOME, servers.database_locked),
    Kind("agent killed", "node", 3, SHORT, processes.killed),
    Kind("agent paused, less than a lease", "node", 2, BELOW, processes.paused, leases=True),
    Kind("agent paused, more than a lease", "node", 1, BEYOND, processes.paused, leases=True),
    Kind("agent away, more than a lease", "node", 1, BEYOND, processes.killed, leases=True),
    Kind("agent replaced", "node", 1, SOME, processes.replaced),
    Kind("agent's clock a day ahead", "node", 1, SOME, machines.clock_ahead),
    Kind("training killed", "node", 3, MOMENT, processes.training_killed),
    Kind("checkpoint damaged, training killed", "node", 3, MOMENT, content.newest_damaged, always=True),
    Kind("all checkpoints damaged, training killed", "node", 1, MOMENT, content.all_damaged),
    Kind("training paused", "node", 1, SOME, processes.training_paused),
    Kind("agent and training killed", "node", 2, SHORT, processes.agent_and_training_killed),
    Kind("node cut off, less than a lease", "node", 2, BELOW, machines.cut, leases=True),
    Kind("node cut off, more than a lease", "node", 1, BEYOND, machines.cut, leases=True),
    Kind("node silent, less than a lease", "node", 2, BELOW, machines.silent_cut, leases=True),
    Kind("node silent, more than a lease", "node", 1, BEYOND, machines.silent_cut, leases=True),
    Kind("slow line", "node", 2, SOME, machines.slow_line),
    Kind("answers lost", "node", 2, SOME, machines.lost_answers),
    Kind("old messages again", "node", 3, MOMENT, machines.said_again),
    Kind("node's disk full", "node", 2, SOME, machines.disk_full),
    Kind("node lies", "liar", 2, SOME, liar.lying, always=True),
    Kind("node joins, answers lost", "newcomer", 1, SOME, processes.joining),
)
CAPABILITIES = (
    "lines are disturbed by a TCP proxy, not by a network namespace",
    "a full disk is a byte limit on files (RLIMIT_FSIZE), not a small file system",
    "a wrong clock is one that the process is given, not the system's; the database keeps the true one",
    "nodes have CPU slots; no GPU is used",
)
