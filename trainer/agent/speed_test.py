"""Running a node's speed tests (docs/adr/0043).

A test is a process of real trainings of a built-in model, started as every training of the node is, each of
another shape and stopped after a few steps. It runs before the node tells the portal that it is there: no job
waits for it that could have started, and the first job is promised from what it measured.
"""

from __future__ import annotations

import json
import logging
import random
import shutil
import time
import uuid
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psutil

from trainer.agent.claims.prepare import RunPreparation, prepare
from trainer.agent.executors.base import Handle, LocalExecutor
from trainer.agent.node.measured import speed_tests
from trainer.agent.storage.folder import read_inside, read_json
from trainer.agent.storage.text import clean_text, parse_object
from trainer.protocol import GpuFacts, NodeFacts, Outcome, ReportKind, Spec
from trainer.recipes import DEFAULT_RECIPE
from trainer.self_tests import SpeedRun, SpeedTest

log = logging.getLogger(__name__)

PREFIX = "speed-test-"  # and the test's name: in place of a claim, other than any other agent's here
TRAIN_S, LEAST_STEPS = 1.5, 3  # the steps of a training: so long, and so many, as the first is left out
LONGEST_S = 90.0  # of a whole test, start-up included
LOOK_EVERY_S = 0.1
ROWS = 64
LOG_BYTES = 10_000_000


class Failed(Exception):
    """A test gave no figures; the message says why."""


def run_due(facts: NodeFacts, workshop: RunPreparation, executor: LocalExecutor) -> tuple[SpeedTest, ...]:
    """Run the tests that are due, unless the node has work.

    Returns the newest of each model. Any error becomes a test's problem: a node without figures is a node
    all the same.
    """
    folder = workshop.folder
    if not folder.known_claims():
        _end_leftovers(workshop, executor)
        for gpu in speed_tests.due(folder, facts):
            test = _tested(gpu, workshop, executor)
            with suppress(OSError):  # run again at the next start
                speed_tests.keep(folder, gpu, facts, test)
    return speed_tests.known(folder, facts.gpus)


def _end_leftovers(workshop: RunPreparation, executor: LocalExecutor) -> None:
    """End tests of an agent that was killed."""
    for run in workshop.folder.runs.glob(f"{PREFIX}*"):
        executor.cancel(Handle(run.name), force=True)
        shutil.rmtree(run, ignore_errors=True)


def _tested(gpu: GpuFacts, workshop: RunPreparation, executor: LocalExecutor) -> SpeedTest:
    name = uuid.uuid4().hex
    try:
        if who := executor.occupant([gpu]):
            raise Failed(who)
        figures = _Trial(PREFIX + name, gpu, workshop, executor).run()
    except (Failed, OSError) as problem:
        log.warning("speed test failed", extra={"gpu": gpu.model, "reason": str(problem)[:300]})
        return SpeedTest(test=name, gpu_model=gpu.model, problem=str(problem)[:500])
    rates = [round(run.tokens_per_s) for run in figures["runs"]]
    log.info("speed tested", extra={"gpu": gpu.model, "tokens_per_s": rates})
    return SpeedTest(test=name, gpu_model=gpu.model, model=speed_tests.MODEL, **figures)


@dataclass
class _Trial:
    """One test's process, from its folders to its figures."""

    name: str
    gpu: GpuFacts
    workshop: RunPreparation
    executor: LocalExecutor
    processor_s: float = 0.0

    @property
    def folder(self) -> Path:
        return self.workshop.folder.runs / self.name

    def run(self) -> dict[str, Any]:
        """Return the figures of `SpeedTest`. Raises Failed and OSError."""
        trainings = speed_tests.trainings(self.gpu)
        runs = [self.folder / str(number) for number in range(len(trainings))]
        handle = self.executor.begin(self.name)
        try:
            for run, params in zip(runs, trainings, strict=True):
                _write_rows(run / "inputs", params["tokens_per_sample"])
                launch = prepare(self._spec(params), self.workshop, run)
            launch = replace(launch, run=self.folder, command=[*self.workshop.command, *map(str, runs)])
            psutil.cpu_percent()  # from here on it counts
            began = time.monotonic()
            handle = self.executor.submit(launch, handle)
            why = self._follow(handle, runs, began)
            others = psutil.cpu_percent() / 100 * (psutil.cpu_count() or 1)
            others -= self.processor_s / (time.monotonic() - began)
            results = [_result(run) for run in runs if (run / "result.json").exists()]
            if not results:
                raise Failed(why)
            return {
                "runs": tuple(_speed_run(*both) for both in zip(trainings, results, strict=False)),
                "startup_s": float(results[0]["startup_s"]),
                "busy_cores": max(0.0, others),
            }
        except (KeyError, TypeError, ValueError) as strange:
            raise Failed(f"its training told no figures ({strange!r})") from strange
        finally:
            self.executor.cancel(handle, force=True)
            shutil.rmtree(self.folder, ignore_errors=True)

    def _spec(self, params: dict[str, Any]) -> Spec:
        return Spec(
            job=self.name,
            attempt=self.name,
            claim=self.name,
            fence=1,
            recipe=DEFAULT_RECIPE.name,
            entry=DEFAULT_RECIPE.entry,
            model=speed_tests.MODEL,
            params=params,
            gpus=(self.gpu.index,),
            resources=self.workshop.share(1, LONGEST_S),
            checkpoint_every_s=LONGEST_S,
        )

    def _follow(self, handle: Handle, runs: Sequence[Path], began: float) -> str:
        """Stop each training once it has done its steps.

        Returns how it ended, when it is over or too late.
        """
        left, since = list(runs), None
        while (end := self.executor.poll(handle)) is None:
            now, step = time.monotonic(), _step(left[0]) if left else None
            if now - began > LONGEST_S:
                return f"it took longer than {LONGEST_S:.0f} s"
            if step is not None:
                since = since or now
                if now - since >= TRAIN_S and step >= LEAST_STEPS:
                    self.executor.cancel(handle, force=False)  # once: a second TERM might meet the next one
                    left, since = left[1:], None
            if load := self.executor.load(handle):
                self.processor_s = load.processor_s
            time.sleep(LOOK_EVERY_S)
        return f"its training left no result ({end.cause}, {end.code}): {last_words(self.folder)}"


def last_words(run: Path) -> str:
    """The last line of a process's log."""
    try:
        text = clean_text(read_inside(run, "log.txt").decode(errors="replace"), LOG_BYTES)
    except OSError:
        return ""
    return (text.strip().splitlines() or [""])[-1][:300]


def _step(run: Path) -> int | None:
    """Return the last step that a training told of; None before it trains."""
    try:
        lines = read_inside(run, "events.jsonl").splitlines()
    except OSError:
        return None
    for line in reversed(lines):
        with suppress(ValueError):
            event = parse_object(line, len(line))
            if event.get("kind") in (ReportKind.STEP, ReportKind.START):
                step = event.get("step", 0)
                return step if isinstance(step, int) else None
    return None


def _result(run: Path) -> dict[str, Any]:
    """Raises Failed."""
    result = read_json(run / "result.json") or {}
    if result.get("outcome") not in (Outcome.SUCCEEDED, Outcome.STOPPED):
        raise Failed(str(result.get("reason") or "its training failed")[:400])
    return result


def _speed_run(params: dict[str, Any], result: dict[str, Any]) -> SpeedRun:
    return SpeedRun(
        params=params,
        tokens_per_s=float(result["tokens_per_s"]),
        peak_memory_bytes=int(result["peak_memory_bytes"]),
    )


def _write_rows(inputs: Path, tokens: int) -> None:
    """Write rows of letters, each longer than a sample.

    The content does not matter for speed.
    """
    letters = random.Random(0)
    texts = ["".join(letters.choices("abcdefghij klmnop", k=tokens + 64)) for _ in range(ROWS)]
    inputs.mkdir(parents=True)
    rows = (json.dumps({"prompt": "Repeat\n", "completion": text}) for text in texts)
    (inputs / "train.jsonl").write_text("\n".join(rows))
