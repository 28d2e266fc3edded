"""Random clusters that are nearly full, where policies have somebody to stop.

In `cluster_states` few jobs wait for GPUs that others hold: hardly one state in thirty makes a policy stop
anybody, and none does where limits are set.
"""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from knowledge.core.domain.types import Goal, Option
from scheduler.core.limits import ALL_MODELS, Limits, Quota, UserLimit
from scheduler.core.types import ClusterState, Holding, JobInfo, NodeInfo, Topology
from tests.scheduler.core.clusters import MODELS, SITES, by_qlora, option

TEAMS, USERS = ("", "a", "b"), ("u", "v", "w")
AGES_S = (5000.0, 901.0, 500.0, 120.0, 5.0)  # how long ago running jobs began
SIZES = (1, 2, 4, 8)


def crowded_states(*, limits: bool = False) -> st.SearchStrategy[ClusterState]:
    """Draw crowds; with limits, teams have quotas and people have limits."""
    return st.integers(0, 10**9).map(lambda seed: crowd(seed, limits=limits))


def crowd(seed: int, *, limits: bool = False) -> ClusterState:
    rng = random.Random(seed)
    total, models = rng.choice((2, 4, 8)), rng.choice((MODELS[:1], MODELS[:1], MODELS))
    jobs, nodes = [], []
    for number in range(rng.randint(1, 4)):
        held, node = _node(rng, f"n{number}", rng.choice(models), total)
        jobs += [replace(one, id=f"r{len(jobs) + place}") for place, one in enumerate(held)]
        nodes.append(node)
    jobs += [_waiting(rng, f"j{number}", models, total) for number in range(rng.randint(1, 8))]
    state = ClusterState(jobs=tuple(jobs), nodes=tuple(nodes))
    return replace(state, limits=_limits(rng, models)) if limits else state


def _node(rng: random.Random, name: str, model: str, total: int) -> tuple[list[JobInfo], NodeInfo]:
    jobs, free, left = [], list[int](), list(range(total))
    while left and rng.random() < 0.9:
        size = min(len(left), rng.choice((1, 1, 1, 2, 2, 4, 8)))
        taken, left = left[:size], left[size:]
        if rng.random() < 0.15:
            free += taken
            continue
        own = _option(rng, model, size)
        others = [gpus for gpus in SIZES[:3] if gpus != size and gpus <= total and rng.random() < 0.4]
        since = -rng.choice(AGES_S)
        held = Holding(option=own, gpus=tuple((name, index) for index in taken), since=since)
        options = (own, *(_option(rng, model, gpus) for gpus in others))
        jobs.append(_job(rng, "", options, True, holds=held, preemptible=rng.random() < 0.85))
    sites = SITES[:total] if rng.random() < 0.5 else ()
    lacks = frozenset({"qlora"} if rng.random() < 0.2 else ())
    node = NodeInfo(
        id=name, gpu_model=model, total=total, free=tuple(free), ready=rng.random() < 0.95, sites=sites,
        cannot_train=lacks,
    )  # fmt: skip
    return jobs, node


def _waiting(rng: random.Random, name: str, models: tuple[str, ...], total: int) -> JobInfo:
    options = tuple(
        _option(rng, model, gpus, 2 if gpus > total else 1)
        for gpus in SIZES
        for model in models
        if gpus <= 2 * total and rng.random() < 0.45
    )
    ran = rng.random() < 0.4
    stopped_at = -rng.choice((400.0, 30.0)) if ran else None
    return _job(
        rng, name, tuple(map(by_qlora, options)) if rng.random() < 0.1 else options, ran,
        stopped_at=stopped_at,
        preempted_at=rng.choice((stopped_at, None)),
        only_node="n0" if rng.random() < 0.1 else None,
        avoids=frozenset({"n0"} if rng.random() < 0.1 else ()),
        hold="not yet" if rng.random() < 0.1 else "",
    )  # fmt: skip


def _job(rng: random.Random, name: str, options: tuple[Option, ...], ran: bool, **more: Any) -> JobInfo:
    return JobInfo(
        id=name,
        submitted_at=float(rng.randint(-1000, 5)),
        options=options,
        goal=rng.choice(list(Goal)),
        user=rng.choice(USERS),
        team=rng.choice(TEAMS),
        weight=rng.choice((1.0, 2.0)),
        borrows=rng.random() < 0.9,
        priority=rng.choice((-1, 0, 0, 0, 0.5, 1, 2)),
        due_at=rng.choice((None, rng.uniform(-10, 1e5))),
        work_left=rng.uniform(0.05, 1.0),
        attained_gpu_s=rng.uniform(0, 1e5) if ran else 0.0,
        first_started_at=-5000.0 if ran else None,
        restart_s=rng.choice((0.0, 30.0)),
        restarts=rng.randint(0, 3),
        preemptions=rng.choice((0, 0, 0, 1, 3)),
        unsaved_s=rng.choice((0.0, 0.0, 100.0)),
        topology=rng.choice(list(Topology)),
        level=rng.randint(1, 4),
        **more,
    )


def _option(rng: random.Random, model: str, gpus: int, nodes: int = 1) -> Option:
    duration_s = 10 ** rng.uniform(1.5, 5.0)
    return option(model, gpus, nodes, duration_s, 1e6 / duration_s)


def _limits(rng: random.Random, models: tuple[str, ...]) -> Limits:
    def few() -> int | None:
        return rng.choice((None, None, 0, 1, 2, 4))

    quotas = tuple(
        Quota(
            team=team, gpu_model=model, guaranteed=rng.randint(0, 8), borrow_limit=few(), lending_limit=few()
        )
        for team in TEAMS[1:]
        for model in (*models, ALL_MODELS)
        if rng.random() < 0.4
    )
    users = tuple(
        UserLimit(
            user=user,
            running_jobs=few(),
            gpus=few(),
            gpu_s_left=rng.choice((None, None, rng.uniform(0, 1e6))),
        )
        for user in USERS[:2]
        if rng.random() < 0.4
    )
    return Limits(quotas, users)
