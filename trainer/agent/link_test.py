"""Measuring the links between a node's GPUs (docs/adr/0052).

Before the node tells the portal that it is there, one process for each GPU of the pairs all-reduces two sizes
of tensors, pair after pair. No job runs meanwhile, so that the figures are the links' own.
"""

from __future__ import annotations

import logging
import shutil
import time
import uuid
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from trainer.agent.claims.prepare import RunPreparation
from trainer.agent.executors.base import Launch, LocalExecutor
from trainer.agent.node.environment import training_environment
from trainer.agent.node.measured import link_tests
from trainer.agent.node.measured.link_tests import LinkTests, Pair
from trainer.agent.speed_test import LOOK_EVERY_S, PREFIX, Failed, last_words
from trainer.agent.storage.folder import read_json, write_json
from trainer.protocol import NodeFacts, ProtocolError
from trainer.protocol_parsing import parse_link_tests
from trainer.self_tests import LinkTest

log = logging.getLogger(__name__)

PROGRAM = ("-m", "trainer.train.distributed.links")
LONGEST_S = 60.0  # of all pairs, the processes' start included


def with_links(facts: NodeFacts, workshop: RunPreparation, executor: LocalExecutor) -> NodeFacts:
    """Return the facts with the node's link tests, which are run if they are due.

    They are unless the node has work, where GPUs are known to relate in some way, if the last ones are
    missing, failed, or of another stack. A node whose links cannot be measured is a node all the same.
    """
    folder, about = workshop.folder, (facts.gpus, facts.software)
    found, pairs = link_tests.known(folder, *about), link_tests.pairs(facts.gpus)
    if pairs and not found.tests and not folder.known_claims():
        found = _tested(pairs, workshop, executor)
        with suppress(OSError):  # run again at the next start
            link_tests.keep(folder, *about, found)
    return replace(facts, link_tests=found.tests, link_problem=found.problem)


def _tested(pairs: Sequence[Pair], workshop: RunPreparation, executor: LocalExecutor) -> LinkTests:
    ranks = sorted({index for pair in pairs for index in pair})
    try:
        if who := executor.occupant([workshop.gpus[index] for index in ranks]):
            raise Failed(who)
        tests = _run(pairs, ranks, workshop, executor)
    except (Failed, OSError) as problem:
        log.warning("links not measured", extra={"reason": str(problem)[:300]})
        return LinkTests(problem=str(problem)[:500])
    log.info("links measured", extra={"gb_s": [round(test.bytes_per_s / 1e9, 1) for test in tests]})
    return LinkTests(tests)


def _run(
    pairs: Sequence[Pair], ranks: Sequence[int], workshop: RunPreparation, executor: LocalExecutor
) -> tuple[LinkTest, ...]:
    """Raises Failed and OSError."""
    name = f"{PREFIX}links-{uuid.uuid4().hex}"
    run = workshop.folder.runs / name
    handle = executor.begin(name)
    try:
        (run / "tmp").mkdir(parents=True)
        places = [[ranks.index(index) for index in pair] for pair in pairs]
        write_json(run / "pairs.json", {"cuda": workshop.has_gpus, "pairs": places})
        handle = executor.submit(_launch(name, run, ranks, workshop), handle)
        began = time.monotonic()
        while (end := executor.poll(handle)) is None:
            if time.monotonic() - began > LONGEST_S:
                raise Failed(f"the all-reduces took longer than {LONGEST_S:.0f} s")
            time.sleep(LOOK_EVERY_S)
        figures = (read_json(run / "links.json") or {}).get("links")
        if figures is None:
            raise Failed(f"the all-reduces left no figures ({end.cause}, {end.code}): {last_words(run)}")
        return parse_link_tests(_of_gpus(figures, ranks), len(workshop.gpus))
    except (ProtocolError, KeyError, TypeError, IndexError) as strange:
        raise Failed(f"the all-reduces told strange figures ({strange!r})") from strange
    finally:
        executor.cancel(handle, force=True)
        shutil.rmtree(run, ignore_errors=True)


def _launch(name: str, run: Path, ranks: Sequence[int], workshop: RunPreparation) -> Launch:
    environment = training_environment(
        run=run,
        models=workshop.folder.models,
        gpus=[workshop.gpus[index].uuid for index in ranks] if workshop.has_gpus else [],
        threads=1,
        offline=True,
    )
    return Launch(
        claim=name,
        command=[workshop.command[0], *PROGRAM, str(run)],
        run=run,
        environment=environment,
        resources=workshop.share(len(ranks), LONGEST_S),
    )


def _of_gpus(figures: Sequence[dict[str, Any]], ranks: Sequence[int]) -> list[dict[str, Any]]:
    """The figures with the indices of GPUs in place of the processes' ranks."""
    return [{**figure, **{name: ranks[figure[name]] for name in ("first", "second")}} for figure in figures]
