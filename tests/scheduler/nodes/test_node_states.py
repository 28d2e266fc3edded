"""The life of a node: every state with every event.

The transitions of the code are compared with the table.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from itertools import product

import pytest

from portal.clock import database_now
from portal.events.models import Event
from portal.events.types import EventType
from scheduler.errors import Conflict, IllegalTransition
from scheduler.models import Gpu, Node
from scheduler.services.deletions import remove_node
from scheduler.services.nodes.register import update_facts
from scheduler.services.nodes.state import (
    block_node,
    drain_node,
    finish_drain,
    lose_node,
    move_node,
    readmit_node,
    resume_node,
)  # fmt: skip
from scheduler.states import NODE_TRANSITIONS, REMOVABLE, STANDING, Block, NodeState
from tests.harness import world
from tests.harness.fake_node import FakeNode, facts
from trainer.protocol_parsing import parse_facts

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)
Step = Callable[[Node, datetime], object]


def lose(node: Node, now: datetime) -> None:
    lose_node(node=node, reason="Silent.", now=now)


def readmit(node: Node, now: datetime) -> None:
    readmit_node(node=node, now=now)


def block(kind: Block, lasts: timedelta | None, node: Node, now: datetime) -> None:
    block_node(node=node, kind=kind, reason="See its log.", now=now, until=now + lasts if lasts else None)


def drain(node: Node, now: datetime) -> None:
    drain_node(node=node, actor=world.admin(), reason="New fans.", move_jobs=False, now=now)


def resume(node: Node, now: datetime) -> None:
    resume_node(node=node, actor=world.admin(), reason="Fans are in.", now=now)


def finish(node: Node, now: datetime) -> None:
    finish_drain(node=node, now=now)


def remove(node: Node, now: datetime) -> None:
    remove_node(node=node, actor=world.admin(), now=now)


def lack_a_slot(node: Node, now: datetime) -> None:
    update_facts(node=node, facts=parse_facts(facts(slots=1)), now=now)


def be_taken(node: Node, now: datetime) -> None:
    """Another node offers the device of its first slot."""
    Gpu.objects.filter(node=node, index=0).update(uuid="GPU-1")
    if not Gpu.objects.filter(device="gpu-1").exists():
        other = world.fake_node(slots=1)
        Gpu.objects.filter(node=other.node_id).update(device="gpu-1")
    said = facts()
    said["gpus"][0]["uuid"] = "GPU-1"
    update_facts(node=node, facts=parse_facts(said), now=now)


SITUATIONS: dict[str, tuple[Step, ...]] = {
    "ready": (),
    "draining": (drain,),
    "drained": (drain, finish),
    "lost": (lose,),
    "lost, drained before": (drain, finish, lose),
    "lost, other GPUs": (lack_a_slot, lose),
    "lost, shared GPUs": (be_taken, lose),
    "flapping": (partial(block, Block.FLAPPING, HOUR),),
    "flapping, over": (partial(block, Block.FLAPPING, -HOUR),),
    "drained, flapping over": (drain, finish, partial(block, Block.FLAPPING, -HOUR)),
    "unconfirmed": (partial(block, Block.UNCONFIRMED, None),),
    "changed": (lack_a_slot,),
    "shared": (be_taken,),
}
INPUTS: dict[str, Step] = {
    "lose": lose,
    "readmit": readmit,
    "declines": partial(block, Block.DECLINES, HOUR),
    "unconfirmed": partial(block, Block.UNCONFIRMED, None),
    "changed": lack_a_slot,
    "drain": drain,
    "resume": resume,
    "finish": finish,
    "remove": remove,
}
# The effect: a state, a block by its kind, = for nothing, noted for an event alone, - for a refusal.
MATRIX = """
situation             |lose|readmit     |declines|unconfirmed     |changed     |drain   |resume|finish |remove
ready                 |lost|=           |declines|unconfirmed-stop|changed-gpus|draining|=     |-      |-
draining              |lost|=           |declines|unconfirmed-stop|changed-gpus|=       |ready |drained|-
drained               |lost|=           |declines|unconfirmed-stop|changed-gpus|=       |ready |-      |noted
lost                  |-   |ready       |declines|unconfirmed-stop|changed-gpus|noted   |-     |-      |noted
lost, drained before  |-   |draining    |declines|unconfirmed-stop|changed-gpus|=       |noted |-      |noted
lost, other GPUs      |-   |changed-gpus|=       |=               |changed-gpus|noted   |-     |-      |noted
lost, shared GPUs     |-   |shared-gpus |=       |=               |changed-gpus|noted   |-     |-      |noted
flapping              |lost|=           |declines|unconfirmed-stop|changed-gpus|draining|ready |-      |noted
flapping, over        |lost|ready       |declines|unconfirmed-stop|changed-gpus|draining|ready |-      |noted
drained, flapping over|lost|draining    |declines|unconfirmed-stop|changed-gpus|=       |ready |-      |noted
unconfirmed           |lost|ready       |=       |unconfirmed-stop|changed-gpus|noted   |-     |-      |noted
changed               |lost|=           |=       |=               |=           |draining|-     |-      |noted
shared                |lost|=           |=       |=               |changed-gpus|draining|-     |-      |noted
"""


def cells() -> list[tuple[str, str, str]]:
    (_, *inputs), *lines = [[cell.strip() for cell in line.split("|")] for line in MATRIX.strip().split("\n")]
    return [(line[0], name, cell) for line in lines for name, cell in zip(inputs, line[1:], strict=True)]


def seen(node: Node) -> str:
    node.refresh_from_db()
    return node.block_kind if node.state == NodeState.BLOCKED else str(node.state)


def test_the_matrix_has_every_state_every_block_and_every_input() -> None:
    assert [(situation, name) for situation, name, _ in cells()] == list(product(SITUATIONS, INPUTS))
    follows = {cell for _, _, cell in cells()}
    assert {str(state) for state in NodeState if state != NodeState.BLOCKED} <= follows


@pytest.mark.one_database
@pytest.mark.parametrize(("situation", "name", "expected"), cells())
def test_what_follows(node: FakeNode, situation: str, name: str, expected: str) -> None:
    row, now = Node.objects.get(), database_now()
    for step in SITUATIONS[situation]:
        step(row, now)
    before, old, reported = seen(row), NodeState(row.state), Event.objects.filter(subject=row.pk).count()
    if expected == "-":
        with pytest.raises((Conflict, IllegalTransition)):
            INPUTS[name](row, now)
    else:
        INPUTS[name](row, now)
    new_events = Event.objects.filter(subject=row.pk).count() - reported
    if expected in ("-", "=", "noted"):
        assert (seen(row), new_events) == (before, int(expected == "noted"))
    else:
        assert (seen(row), new_events) == (expected, 1)
        assert NodeState(row.state) in NODE_TRANSITIONS[old]


@pytest.mark.parametrize("old", list(NodeState))
def test_only_listed_transitions_happen(node: FakeNode, old: NodeState) -> None:
    for new in NodeState:
        Node.objects.update(state=old)
        row, answer = Node.objects.get(), Event.objects.count()
        move = partial(move_node, node=row, to=new, event=EventType.NODE_BACK, now=database_now())
        if new in NODE_TRANSITIONS[old]:
            move()
        else:
            with pytest.raises(IllegalTransition):
                move()
        assert Node.objects.get().state == (new if new in NODE_TRANSITIONS[old] else old)
        assert Event.objects.count() - answer == (new in NODE_TRANSITIONS[old])


def test_a_node_that_moved_meanwhile_stays_as_it_is(node: FakeNode) -> None:
    row, answer = Node.objects.get(), Event.objects.count()
    Node.objects.update(state=NodeState.DRAINING)
    lose(row, database_now())
    assert (row.state, Event.objects.count()) == (NodeState.DRAINING, answer)


def test_every_state_has_its_row_and_can_work_again() -> None:
    assert set(NODE_TRANSITIONS) == set(NodeState)
    ready = {NodeState.READY}
    for _ in NodeState:
        ready |= {state for state, following in NODE_TRANSITIONS.items() if following & ready}
    assert ready == set(NodeState)
    assert NodeState.READY not in REMOVABLE
    assert set(Block) > STANDING
