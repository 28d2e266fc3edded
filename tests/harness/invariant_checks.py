"""The invariants of docs/architecture.md as queries over the rows alone.

Every query selects the breaches of its invariant, as (subject, detail), on SQLite and on PostgreSQL:
LATER(moment) is the moment and some slack, PRESENT the database's clock.
"""

from __future__ import annotations

from typing import NamedTuple

from portal.events.types import MOVES
from scheduler.states import LIVE, TERMINAL, TRANSITIONS


class Check(NamedTuple):
    """An invariant, or a part of it, and the rows that break it."""

    number: str
    says: str
    broken: str


def _words(names: frozenset[str] | tuple[str, ...]) -> str:
    return ", ".join(f"'{name}'" for name in sorted(names))


def _pairs() -> str:
    pairs = [f"('{old}', '{new}')" for old, following in TRANSITIONS.items() for new in sorted(following)]
    return ", ".join(pairs)


FINAL, HOLDING, MOVED = _words(TERMINAL), _words(LIVE), _words(MOVES)
TROUBLE = _words(("lost", "declined", "timeout", "killed", "checkpoint", "data"))
STARTED = "EXISTS (SELECT 1 FROM scheduler_claim c WHERE c.attempt_id = a.id AND c.started)"
EXECUTED = "EXISTS (SELECT 1 FROM knowledge_execution x WHERE x.attempt_id = a.id)"


def _came_late(table: str, owner: str) -> str:
    through = "JOIN scheduler_claim c ON c.id = r.claim_id" if owner == "claim" else ""
    attempt = "c.attempt_id" if owner == "claim" else "r.attempt_id"
    return (
        f"SELECT a.job_id, a.outcome FROM scheduler_{table} r {through}"
        f" JOIN scheduler_attempt a ON a.id = {attempt} WHERE r.at > LATER(a.ended_at)"
    )


def _count(what: str, where: str) -> str:
    return f"(SELECT COUNT(*) FROM scheduler_{what} WHERE {where})"


CHECKS = (
    Check(
        "I2",
        "a final state is final",
        f"SELECT subject, old FROM events_event WHERE type IN ({MOVED}) AND old IN ({FINAL})",
    ),
    Check(
        "I3",
        "only listed transitions happen",
        f"SELECT subject, old || ' -> ' || new FROM events_event WHERE type IN ({MOVED})"
        f" AND (old, new) NOT IN (VALUES {_pairs()})"
        " AND NOT (old = 'stopping' AND new = 'stopping' AND stop_for = 'cancel')",
    ),
    Check(
        "I4",
        "a job has one live attempt while it holds GPUs, else none",
        "SELECT j.id, j.state FROM scheduler_job j WHERE "
        + _count("attempt a", "a.job_id = j.id AND a.ended_at IS NULL")
        + f" <> CASE WHEN j.state IN ({HOLDING}) THEN 1 ELSE 0 END",
    ),
    Check(
        "I5",
        "a GPU has one open allocation at most",
        "SELECT gpu_id, COUNT(*) FROM scheduler_allocation WHERE released_at IS NULL"
        " GROUP BY gpu_id HAVING COUNT(*) > 1",
    ),
    Check(
        "I5",
        "allocations of a GPU do not overlap",
        "SELECT gpu_id, allocated_at FROM (SELECT gpu_id, allocated_at, LAG(released_at) OVER"
        " (PARTITION BY gpu_id ORDER BY allocated_at, id) AS freed_at FROM scheduler_allocation) held"
        " WHERE allocated_at < freed_at",
    ),
    Check(
        "I5",
        "a lost node holds nothing",
        "SELECT n.name, c.id FROM scheduler_allocation l JOIN scheduler_claim c ON c.id = l.claim_id"
        " JOIN scheduler_node n ON n.id = c.node_id WHERE l.released_at IS NULL AND n.state = 'lost'",
    ),
    Check(
        "I5",
        "only ready nodes get work",
        "SELECT c.node_id, e.type FROM scheduler_allocation l JOIN scheduler_claim c ON c.id = l.claim_id"
        " JOIN events_event e ON e.subject = c.node_id AND LATER(e.at) < l.allocated_at"
        " WHERE e.type IN ('node.lost', 'node.blocked', 'node.draining', 'node.drained') AND NOT EXISTS"
        " (SELECT 1 FROM events_event b WHERE b.subject = e.subject AND b.id > e.id"
        " AND b.type IN ('node.back', 'node.resumed') AND b.at <= l.allocated_at)",
    ),
    Check(
        "I5",
        "a GPU that is kept for a job is held by nobody but those who leave it",
        "SELECT k.gpu_id, j.id || ' ' || j.state FROM scheduler_pendinggpu k"
        " JOIN scheduler_allocation l ON l.gpu_id = k.gpu_id AND l.released_at IS NULL"
        " JOIN scheduler_claim c ON c.id = l.claim_id JOIN scheduler_attempt a ON a.id = c.attempt_id"
        " JOIN scheduler_job j ON j.id = a.job_id WHERE j.state <> 'stopping'",
    ),
    Check(
        "I6",
        "what has ended holds no GPU",
        "SELECT a.job_id, a.outcome FROM scheduler_allocation l JOIN scheduler_claim c ON c.id = l.claim_id"
        " JOIN scheduler_attempt a ON a.id = c.attempt_id"
        " WHERE l.released_at IS NULL AND a.ended_at IS NOT NULL",
    ),
    Check(
        "I6",
        "what lives holds its GPUs",
        "SELECT a.job_id, c.id FROM scheduler_claim c JOIN scheduler_attempt a ON a.id = c.attempt_id"
        " WHERE a.ended_at IS NULL AND c.phase NOT IN ('delivering', 'ended')"
        " AND NOT EXISTS (SELECT 1 FROM scheduler_allocation l"
        " WHERE l.claim_id = c.id AND l.released_at IS NULL)",
    ),
    Check(
        "I6",
        "what only delivers holds no GPU",
        "SELECT a.job_id, c.id FROM scheduler_allocation l JOIN scheduler_claim c ON c.id = l.claim_id"
        " JOIN scheduler_attempt a ON a.id = c.attempt_id"
        " WHERE l.released_at IS NULL AND c.phase = 'delivering'",
    ),
    Check("I7", "no step is noted after the end", _came_late("metric", "attempt")),
    Check("I7", "no log is taken after the end", _came_late("logpiece", "claim")),
    Check("I7", "no checkpoint is taken after the end", _came_late("checkpoint", "attempt")),
    Check("I7", "no artifact is taken after the end", _came_late("artifact", "claim")),
    Check(
        "I7",
        "fences rise",
        "SELECT job_id, fence FROM (SELECT job_id, fence, created_at, LAG(created_at) OVER"
        " (PARTITION BY job_id ORDER BY fence) AS before FROM scheduler_attempt) a WHERE created_at < before",
    ),
    Check(
        "I8",
        "version and events agree",
        "SELECT j.id, j.version FROM scheduler_job j JOIN events_event e ON e.subject = j.id"
        " GROUP BY j.id, j.version"
        " HAVING COUNT(*) <> j.version OR MAX(e.number) <> j.version OR MIN(e.number) <> 1",
    ),
    Check(
        "I8",
        "the last event tells the row",
        "SELECT j.id, e.number FROM scheduler_job j LEFT JOIN events_event e"
        " ON e.subject = j.id AND e.number = j.version WHERE e.id IS NULL OR e.new <> j.state"
        " OR e.stop_for <> j.stop_for OR e.fence <> j.fence",
    ),
    Check(
        "I8",
        "each event begins where the last one ended",
        "SELECT subject, number FROM (SELECT subject, number, old, LAG(new) OVER"
        " (PARTITION BY subject ORDER BY number) AS before FROM events_event WHERE number > 0) e"
        " WHERE old <> before",
    ),
    Check(
        "I9",
        "an attempt that ran and ended left an execution",
        "SELECT a.job_id, a.outcome FROM scheduler_attempt a"
        f" WHERE a.ended_at IS NOT NULL AND {STARTED} AND NOT {EXECUTED}",
    ),
    Check(
        "I9",
        "nothing else left one",
        "SELECT a.job_id, a.outcome FROM scheduler_attempt a"
        f" WHERE {EXECUTED} AND (a.ended_at IS NULL OR NOT {STARTED})",
    ),
    Check(
        "I9",
        "an execution says what its attempt says",
        "SELECT a.job_id, a.outcome || ' but ' || x.status FROM scheduler_attempt a"
        " JOIN knowledge_execution x ON x.attempt_id = a.id"
        " WHERE (a.outcome = 'oom') <> (x.status = 'oom') OR (a.outcome = 'error' AND x.status <> 'failed')"
        " OR (a.outcome = 'succeeded' AND x.status <> 'ok' AND x.tokens_per_second IS NOT NULL)"
        " OR (a.outcome <> 'succeeded' AND x.runtime_s IS NOT NULL)",
    ),
    Check(
        "I11",
        "what is stored was acknowledged",
        "SELECT c.id, MAX(l.seq) FROM scheduler_claim c JOIN scheduler_logpiece l ON l.claim_id = c.id"
        " GROUP BY c.id, c.acked_seq HAVING MAX(l.seq) > c.acked_seq",
    ),
    Check(
        "I12",
        "an accepted cancel ends as cancelled",
        "SELECT j.id, j.state FROM scheduler_job j WHERE j.state IN ('succeeded', 'failed')"
        " AND EXISTS (SELECT 1 FROM events_event e WHERE e.subject = j.id AND e.stop_for = 'cancel')",
    ),
    Check(
        "I14",
        "an attempt resumes from an earlier checkpoint of its job",
        "SELECT a.job_id, a.resume_step FROM scheduler_attempt a"
        " JOIN scheduler_checkpoint k ON k.id = a.resume_from_id"
        " JOIN scheduler_attempt s ON s.id = k.attempt_id"
        " WHERE k.step <> a.resume_step OR k.job_id <> a.job_id OR s.fence >= a.fence",
    ),
    Check(
        "I14",
        "nothing that the portal holds is done again",
        "SELECT a.job_id, k.step FROM scheduler_attempt a"
        " JOIN scheduler_checkpoint k ON k.job_id = a.job_id AND k.node_id IS NULL AND k.fault = ''"
        " JOIN scheduler_attempt s ON s.id = k.attempt_id"
        " WHERE s.fence < a.fence AND k.step > a.resume_step",
    ),
    Check(
        "I14",
        "a checkpoint that failed an attempt is offered to no other",
        "SELECT job_id, COUNT(*) FROM scheduler_attempt WHERE outcome = 'checkpoint'"
        " AND resume_from_id IS NOT NULL GROUP BY job_id, resume_from_id HAVING COUNT(*) > 1",
    ),
    Check(
        "I14",
        "no checkpoint lies beyond the last step",
        "SELECT j.id, k.step FROM scheduler_checkpoint k JOIN scheduler_job j ON j.id = k.job_id"
        " WHERE k.step > j.total_steps",
    ),
    Check(
        "I14",
        "steps never fall below the checkpoint",
        "SELECT a.job_id, m.step FROM scheduler_metric m JOIN scheduler_attempt a ON a.id = m.attempt_id"
        " WHERE m.step < a.resume_step",
    ),
    Check(
        "I15",
        "nothing ends before it begins",
        "SELECT job_id, outcome FROM scheduler_attempt"
        " WHERE created_at > LATER(ended_at) OR created_at > LATER(running_at)"
        " OR running_at > LATER(ended_at)",
    ),
    Check(
        "I15",
        "times follow the order of events",
        "SELECT subject, number FROM (SELECT subject, number, at, LAG(at) OVER"
        " (PARTITION BY subject ORDER BY number) AS before FROM events_event WHERE number > 0) e"
        " WHERE before > LATER(at)",
    ),
    Check(
        "I15",
        "no state begins in the future",
        "SELECT id, state FROM scheduler_job WHERE state_since > LATER(PRESENT)",
    ),
    Check(
        "I21",
        "a node's price is the newest of its prices",
        "SELECT n.name, n.price_per_gpu_hour FROM scheduler_node n WHERE n.price_per_gpu_hour <> COALESCE("
        "(SELECT p.price_per_gpu_hour FROM scheduler_nodeprice p WHERE p.node_id = n.id"
        " ORDER BY p.id DESC LIMIT 1), 0)",
    ),
    Check(
        "I21",
        "prices of a node follow each other in time",
        "SELECT node_id, since FROM (SELECT node_id, since, LAG(since) OVER"
        " (PARTITION BY node_id ORDER BY id) AS before FROM scheduler_nodeprice) p WHERE since < before",
    ),
    Check(
        "I18",
        "an attempt that was stopped for a job was asked to stop",
        "SELECT a.job_id, a.stopped_for_id FROM scheduler_attempt a WHERE a.stopped_for_id IS NOT NULL"
        " AND NOT EXISTS (SELECT 1 FROM events_event e WHERE e.subject = a.job_id"
        " AND e.fence = a.fence AND e.stop_for = 'preempt')",
    ),
    Check(
        "I18",
        "each stop for others is counted",
        "SELECT e.subject, e.fence FROM events_event e WHERE e.stop_for = 'preempt'"
        " AND e.type = 'job.stopping' AND NOT EXISTS (SELECT 1 FROM scheduler_preemption p"
        " WHERE p.job_id = e.subject AND p.fence = e.fence AND p.at = e.at)",
    ),
    Check(
        "I20",
        "budgets are kept",
        "SELECT j.id, j.state FROM scheduler_job j WHERE j.errors_used > j.retries OR j.oom_used > 1"
        " OR j.infrastructure_used > 5 OR j.errors_used > "
        + _count("attempt a", "a.job_id = j.id AND a.outcome = 'error'")
        + " OR j.infrastructure_used > "
        + _count("attempt a", f"a.job_id = j.id AND a.outcome IN ({TROUBLE})"),
    ),
    Check(
        "I20",
        "trouble that is not the user's fails nobody as the user's",
        "SELECT j.id, j.failure_reason FROM scheduler_job j WHERE j.failure_class = 'user' AND EXISTS"
        " (SELECT 1 FROM scheduler_attempt a WHERE a.job_id = j.id) AND NOT EXISTS"
        " (SELECT 1 FROM scheduler_attempt a WHERE a.job_id = j.id AND a.outcome = 'error')",
    ),
)

ENDED = (
    Check(
        "L4",
        "every job ends",
        f"SELECT id, state || ' ' || wait_text FROM scheduler_job WHERE state NOT IN ({FINAL})",
    ),
    Check("L4", "every attempt ends", "SELECT job_id, fence FROM scheduler_attempt WHERE ended_at IS NULL"),
    Check(
        "L4",
        "nothing is kept for anybody",
        "SELECT job_id, expires_at FROM scheduler_pendingstart",
    ),
    Check(
        "L4",
        "every GPU is freed",
        "SELECT gpu_id, claim_id FROM scheduler_allocation WHERE released_at IS NULL",
    ),
)
