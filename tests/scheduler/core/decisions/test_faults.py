"""A plan that can never be carried out is told apart from one that comes too late, and is no silence."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import Any

import pytest

from scheduler.core.decisions.faults import faults
from scheduler.core.policies import FIFO
from scheduler.core.stopping import StopReason
from scheduler.core.types import Action, ClusterState, Description, Plan, Preempt, Resize, Start
from scheduler.loop import deciding
from tests.scheduler.core.clusters import job, node, option, running

ONE, TWO = option(), option(gpus=2)
NEW, OLD = job("new", ONE, TWO), running("old", ONE, ("n", 2))
FIRM = replace(running("firm", ONE, ("n", 3)), preemptible=False)
OTHER = node("m", 2, model="L40S")
STATE = ClusterState(jobs=(NEW, OLD, FIRM), nodes=(node("n", 2, total=4), OTHER, node("off", 1, ready=False)))
STOP, START = Preempt("old", StopReason.RANK), Start("new", ONE, (("n", 0),))


@dataclass(frozen=True)
class Unheard:
    job: str = "new"


@pytest.mark.parametrize(
    ("actions", "why"),
    [
        ((START,), ""),
        ((STOP, Start("new", TWO, (("n", 0), ("n", 2)))), ""),
        ((Resize("old", ONE, (("n", 1),)), Start("new", ONE, (("n", 2),))), ""),
        ((Unheard(),), "nobody knows"),
        ((Start("gone", ONE, (("n", 0),)),), "is not there"),
        ((START, START), "two actions"),
        ((Start("old", ONE, (("n", 0),)),), "runs already"),
        ((Start("new", option(gpus=3), (("n", 0), ("n", 1), ("n", 2))),), "no such option"),
        ((Preempt("new", StopReason.RANK),), "does not run"),
        ((Resize("new", ONE, (("n", 0),)),), "does not run"),
        ((Preempt("firm", StopReason.RANK),), "may not be stopped"),
        ((Start("new", TWO, (("n", 0),)),), "takes 1 GPUs, and its option 2"),
        ((Start("new", TWO, (("n", 0), ("n", 0))),), "takes 1 GPUs, and its option 2"),
        ((Start("new", ONE, (("m", 0),)),), "of another model"),
        ((Start("new", ONE, (("off", 0),)),), "not ready"),
        ((Start("new", ONE, (("nowhere", 0),)),), "not ready"),
        ((Start("new", ONE, (("n", 2),)),), "another job's"),
        ((Resize("old", ONE, (("n", 0),)), START), "another job's"),
    ],
)
def test_what_no_node_could_do_is_named(actions: tuple[Action, ...], why: str) -> None:
    found = faults(STATE, Plan(actions))
    assert len(found) == bool(why)
    assert why in " ".join(found)


@dataclass(frozen=True)
class _Mistaken:
    """It gives the newcomer a GPU that another job keeps."""

    name: str = "mistaken"
    description: Description = FIFO.description
    preempts: bool = False
    rules: None = None
    round_s: float | None = None

    def decide(self, state: ClusterState, now: float) -> Plan:
        return Plan((Start("new", ONE, (("n", 2),)),))


def test_it_is_an_error_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    plan = deciding.decide(_Mistaken(), STATE, 0.0, lambda: None)
    assert plan is not None
    [record] = [one for one in caplog.records if one.levelno == logging.ERROR]
    told: Any = record
    assert (told.policy, "another job's" in told.why) == ("mistaken", True)
