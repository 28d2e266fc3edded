"""The verdict of a chaos run: the violations found.

It follows from the rows, the clients' notes and the times of the faults alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from portal.events.models import Event
from portal.events.types import EventType
from scheduler.models import Attempt, Job, Node
from tests.chaos.judging.silence import Silences
from tests.chaos.notes import Note
from tests.harness.invariant_checks import CHECKS, ENDED
from tests.harness.invariants import Violation, violations

SAME_LOSS = 1e-4
REFUSED_AS_REUSED = 422


def judge(
    rows: str, notes: Sequence[Note], *, losses: Mapping[str, float], silences: Silences, nodes: int
) -> list[Violation]:
    """Return every violation.

    rows: alias of the database

    losses: the loss of each shape of job when nothing disturbs it
    """
    return [
        *violations(rows, CHECKS + ENDED),
        *_creations(rows, notes),
        *_answers(rows, notes),
        *_losses(rows, notes, losses),
        *_nodes(rows, silences, nodes),
    ]


def _creations(rows: str, notes: Sequence[Note]) -> Iterator[Violation]:
    """I1 and I10: a job is named after the key under which it was asked for."""
    requests = defaultdict[str, list[Note]](list)
    for note in notes:
        if note.op == "submit":
            requests[note.key].append(note)
    made = defaultdict[str, list[str]](list)
    for job_id, name in Job.objects.using(rows).values_list("id", "name"):
        made[name].append(job_id)
    for key, tries in requests.items():
        reported = {note.job for note in tries if note.known == "ok"}
        if reported - set(made[key]):
            yield Violation("I1", "a confirmed job exists", key, f"told {reported}, there is {made[key]}")
        if len(made[key]) > 1 or len(reported) > 1:
            yield Violation("I10", "one key, one job", key, f"told {reported}, there is {made[key]}")
        if made[key] and all(note.known == "failed" for note in tries):
            yield Violation("I1", "what was refused has no effect", key, str(made[key]))


def _answers(rows: str, notes: Sequence[Note]) -> Iterator[Violation]:
    states = dict(Job.objects.using(rows).values_list("id", "state"))
    for note in notes:
        if note.op == "submit other" and note.known == "ok":
            yield Violation("I10", "a key with another body is refused", note.key, str(note.code))
        if note.op == "cancel" and note.known == "ok" and states.get(note.job) != "cancelled":
            yield Violation("I12", "an accepted cancel holds", note.job, states.get(note.job, "gone"))
        if note.code >= 500 and note.code not in (503, 507):
            detail = f"{note.op} {note.key}"
            yield Violation("F", "a portal in trouble says 503, of a full disk 507", detail, str(note.code))


def _losses(rows: str, notes: Sequence[Note], losses: Mapping[str, float]) -> Iterator[Violation]:
    shapes = {note.key: note.shape for note in notes if note.shape}
    ended = Attempt.objects.using(rows).filter(outcome="succeeded").select_related("job")
    for attempt in ended:
        expected, loss = losses.get(shapes.get(attempt.job.name, "")), attempt.figures.final_loss
        if expected is not None and (loss is None or abs(loss - expected) > SAME_LOSS):
            detail = f"{loss}, not {expected}, resumed at {attempt.resume_step}"
            yield Violation("I14", "a resumed training learns the same", attempt.job_id, detail)


def _nodes(rows: str, silences: Silences, nodes: int) -> Iterator[Violation]:
    present = list(Node.present.using(rows).values_list("name", "state", "reason"))
    if len(present) != nodes:
        yield Violation("F", "no node without an agent", f"{len(present)} nodes", f"{nodes} agents")
    for name, state, reason in present:
        if state != "ready":
            yield Violation("L4", "every node works again", name, f"{state}: {reason}")
    names = dict(Node.objects.using(rows).values_list("pk", "name"))
    for event in Event.objects.using(rows).filter(type__in=(EventType.NODE_LOST, EventType.NODE_BLOCKED)):
        name, lost = names[event.subject], event.type == EventType.NODE_LOST
        if lost and (why := silences.too_short(name, event.at.timestamp())):
            yield Violation("F10", "no node is lost before its lease has passed", name, why)
        if not lost and "resume/" in event.reason:
            yield Violation("F", "no node is blamed for a checkpoint", name, event.reason)
        if not lost and event.reason.startswith("Two agents"):
            yield Violation("F3", "one agent is not taken for two", name, event.reason)
