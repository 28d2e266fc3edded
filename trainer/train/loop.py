"""The training loop: forward, backward and AdamW.

Between steps it evaluates, writes checkpoints and obeys stop requests. The loss is the mean
over all trained tokens of the effective batch, whatever its split into processes and
micro-batches.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch

from trainer import checkpoint
from trainer.protocol import ReportKind, Spec, to_json
from trainer.train import checkpoint_state
from trainer.train.data import Batch, Sample, collate
from trainer.train.distributed.process_group import World, gradients_stay_local
from trainer.train.errors import Stopped, TrainError, is_disk_full
from trainer.train.events import Journal, RunFigures
from trainer.train.loss import TokenLoss
from trainer.train.memory import peak_bytes
from trainer.train.plan import StepPlan
from trainer.train.schedule import share_of_peak
from trainer.train.settings import TrainingSpec

LOOK_EVERY_S = 5.0  # within a step that takes longer; several processes must talk to look
_TRAINED_PER_SAVED = 10.0  # seconds between checkpoints for each second that the last one took


def pause_between_checkpoints_s(spec: Spec, last_took_s: float) -> float:
    """Return the seconds of training before the next checkpoint; 0: after every step.

    Where a checkpoint takes minutes, one a minute would be mostly saving.
    """
    every_s = spec.checkpoint_every_s
    return max(every_s, _TRAINED_PER_SAVED * last_took_s) if every_s else 0.0


class StopRequest(Protocol):
    """Has anyone asked the training to stop?"""

    requested: bool


@dataclass
class Loop:
    """One process's part of a training.

    loss: of a micro-batch.
    forward: the same, as wrapped for several processes.
    """

    order: TrainingSpec
    world: World
    model: Any
    loss: TokenLoss
    forward: Any
    optimizer: Any
    scaler: Any
    plan: StepPlan
    train: Sequence[Sample]
    validation: Sequence[Sample]
    pad: int
    identity: dict[str, Any]
    journal: Journal
    measured: RunFigures
    stop: StopRequest
    _saved_at: float = field(default_factory=time.monotonic)
    _saving_took_s: float = 0.0
    _saved_step: int = 0
    _look_every: int = 1  # micro-batches
    _first: tuple[int, float] | None = None

    def run(self) -> None:
        """Train to the last step.

        Raises Stopped after saving, TrainError if the loss is not a number.
        """
        if self.world.any(self.stop.requested):
            raise Stopped
        if self._stopped_before_evaluating():
            self._evaluate()
        self._meet_peak()
        while self.measured.step < self.plan.steps:
            self._step(self.measured.step)
        if self.validation:
            self._evaluate()

    @checkpoint_state.blamed()
    def resume(self, snapshot: checkpoint_state.Snapshot) -> None:
        """Go on where the snapshot was taken. Raises CheckpointFault."""
        checkpoint_state.restore(self.model, self.optimizer, snapshot)
        if snapshot.scaler:
            self.scaler.load_state_dict(snapshot.scaler)
        self.journal.rows.extend(snapshot.rows)
        self.measured.step, self.measured.tokens = snapshot.step, snapshot.tokens
        self._saved_step = snapshot.step
        self.measured.first_loss, self.measured.final_loss = snapshot.first_loss, snapshot.final_loss

    def _stopped_before_evaluating(self) -> bool:
        """Was this resumed where an epoch ends, without the figure that belongs there?"""
        step = self.measured.step
        if not self.validation or not 0 < step < self.plan.steps or not self.plan.ends_epoch(step - 1):
            return False
        return not any(row["step"] == step and "eval_loss" in row for row in self.journal.rows)

    def _meet_peak(self) -> None:
        """Compute the largest micro-batch, and learn nothing from it.

        So memory that does not suffice shows in seconds, not when the step comes that needs most.
        """
        if self.measured.step == self.plan.steps:
            return
        if rows := self.plan.largest_after(self.measured.step):
            self.loss_sum(self.forward, self._batch(self.train, rows)).backward()
            self.optimizer.zero_grad(set_to_none=True)
            self.journal.event(ReportKind.MEMORY, memory_bytes=peak_bytes(self.world.device))

    def _step(self, step: int) -> None:
        begun = time.monotonic()
        settings = self.order.settings
        share = share_of_peak(step, self.plan.steps, settings.lr_schedule, settings.warmup_share)
        rate = settings.learning_rate * share
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        torch.manual_seed(settings.seed * 1_000_003 + step * self.world.size + self.world.rank)
        values = {**self._update(step), "learning_rate": rate}
        self._reject_not_finite(values["loss"])
        seconds = time.monotonic() - begun
        self._count(values, step, seconds)
        self._between_steps(seconds)

    def _reject_not_finite(self, number: float) -> None:
        if not math.isfinite(number):
            raise TrainError(
                f"The loss after step {self.measured.step}, or its gradient, is not a finite number. Lower"
                " learning_rate or choose bfloat16 or float32 as precision."
            )

    def _update(self, step: int) -> dict[str, float]:
        """One optimiser step; its step metrics, over all processes."""
        targets = max(1, sum(self.train[row].targets for row in self.plan.rows(step)))
        batches = self.plan.micro_batches(step, self.world.rank, self.world.size)
        loss = torch.zeros((), device=self.world.device)
        for index, rows in enumerate(batches):
            if index and index % self._look_every == 0:
                self._look_within_step()
            with gradients_stay_local(self.forward, local=index + 1 < len(batches)):
                part = self.loss_sum(self.forward, self._batch(self.train, rows)) / targets
                loss += part.detach()
                # processes average their gradients, but the loss is a sum over them
                self.scaler.scale(part * self.world.size).backward()
        self.scaler.unscale_(self.optimizer)
        learning = [weight for _, weight in checkpoint_state.trainable(self.model)]
        norm = float(
            checkpoint_state.whole(torch.nn.utils.clip_grad_norm_(learning, self.order.settings.clip_norm))
        )
        if not self.scaler.is_enabled():  # which leaves such a step out
            self._reject_not_finite(norm)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.zero_grad(set_to_none=True)
        return {"loss": self.world.sum(loss.item())[0], "gradient_norm": norm}

    def _look_within_step(self) -> None:
        """Break a long silence and obey a stop within a step.

        The step is given up, lest all since the last checkpoint be lost when the grace is over.
        """
        self.journal.alive(peak_bytes(self.world.device))
        if self.world.any(self.stop.requested):
            self.optimizer.zero_grad(set_to_none=True)
            self._save()
            raise Stopped

    def loss_sum(self, loss: Any, batch: Batch) -> torch.Tensor:
        """Cross entropy summed over the micro-batch's trained tokens."""
        precision = getattr(torch, self.order.settings.precision)
        with torch.autocast(self.world.device.type, precision, enabled=precision is not torch.float32):
            return loss(batch.ids, batch.labels)

    def _batch(self, samples: Sequence[Sample], rows: list[int]) -> Batch:
        return collate([samples[row] for row in rows], self.pad, self.world.device)

    def _count(self, values: dict[str, float], step: int, seconds: float) -> None:
        measured, loss, tokens = self.measured, values["loss"], self.plan.tokens(step)
        measured.step += 1
        measured.tokens += tokens
        measured.attempt_tokens += tokens
        measured.train_s += seconds
        measured.first_loss = loss if measured.first_loss is None else measured.first_loss
        measured.final_loss = loss
        first_tokens, first_s = self._first or (0, 0.0)
        measured.tokens_per_s = (measured.attempt_tokens - first_tokens) / (measured.train_s - first_s)
        self._first = self._first or (tokens, seconds)
        measured.peak_memory_bytes = peak_bytes(self.world.device)
        values["memory_bytes"] = measured.peak_memory_bytes
        self.journal.step(measured, values, tokens, self.plan.row_tokens(step), seconds)

    def _between_steps(self, step_s: float) -> None:
        pause_s = pause_between_checkpoints_s(self.order.spec, self._saving_took_s)
        due = self.world.main and time.monotonic() - self._saved_at >= pause_s
        stop, save, step_s = self.world.max(float(self.stop.requested), float(due), step_s)
        parts = self.plan.batch // self.plan.micro // self.world.size
        self._look_every = math.ceil(LOOK_EVERY_S * parts / step_s) or 1
        step = self.measured.step
        if step == self.plan.steps:
            return
        if stop:
            self._save()
            raise Stopped
        if self.validation and self.plan.ends_epoch(step - 1):
            self._evaluate()
        if save:
            self._save(needed=False)

    def _evaluate(self) -> None:
        """Compute the mean loss of the validation rows.

        Raises Stopped, after saving, if a stop comes first.
        """
        before_s = self.measured.evaluation_s
        with self._timed("evaluation_s"), self._evaluating():
            loss = self._validation_loss()
        if loss is None:
            self._save()
            raise Stopped
        self._reject_not_finite(loss)
        self.measured.eval_loss = loss
        seconds = self.measured.evaluation_s - before_s
        self.journal.evaluated(self.measured.step, {"eval_loss": loss}, seconds)

    def _validation_loss(self) -> float | None:
        """Each process computes a part of the rows; None if a stop came first."""
        micro = self.order.settings.per_device_batch_size
        by_length = sorted(range(len(self.validation)), key=lambda row: -len(self.validation[row]))
        chunks = [by_length[start : start + micro] for start in range(0, len(by_length), micro)]
        loss = torch.zeros((), device=self.world.device)
        for start in range(0, len(chunks), self.world.size):
            if self.world.any(self.stop.requested):
                return None
            mine = start + self.world.rank
            # FSDP gathers weights in every forward pass, so a process without rows computes some too
            part = self.loss_sum(self.loss, self._batch(self.validation, chunks[mine % len(chunks)]))
            loss += part if mine < len(chunks) else 0
            self.journal.alive(peak_bytes(self.world.device))
        targets = sum(sample.targets for sample in self.validation)
        return self.world.sum(loss.item())[0] / max(1, targets)

    @contextmanager
    def _evaluating(self) -> Iterator[None]:
        self.model.eval()
        with torch.no_grad():
            yield
        self.model.train()

    def _save(self, *, needed: bool = True) -> None:
        """Save a checkpoint; unless needed, it is left out where the disk has no room.

        There will be others.
        """
        if self._saved_step == self.measured.step:
            return
        begun = time.monotonic()
        with self._timed("saving_s"):
            keep = self.world.main
            weights = checkpoint_state.weights(self.model, keep=keep)
            moments = checkpoint_state.moments(self.model, self.optimizer, keep=keep)
            if keep:
                try:
                    self._write(weights, moments)
                except Exception as wrong:  # safetensors has errors of its own
                    if needed or not is_disk_full(wrong):
                        raise
                    self.journal.say(
                        f"the checkpoint of step {self.measured.step} is left out: the disk is full ({wrong})"
                    )
        self._saved_at, self._saved_step = time.monotonic(), self.measured.step
        self._saving_took_s = self._saved_at - begun

    def _write(self, weights: dict[str, torch.Tensor], moments: dict[str, torch.Tensor]) -> None:
        measured = self.measured
        snapshot = checkpoint_state.Snapshot(
            step=measured.step,
            updates=checkpoint_state.updates(self.optimizer),
            tokens=measured.tokens,
            first_loss=measured.first_loss,
            final_loss=measured.final_loss,
            identity=self.identity,
            scaler=self.scaler.state_dict(),
            rows=self.journal.rows,
            weights=weights,
            moments=moments,
        )
        saved = checkpoint.save(self.order.run_dir / "checkpoints", measured.step, snapshot.write)
        place = saved.folder.relative_to(self.order.run_dir).as_posix()
        self.journal.event(
            ReportKind.CHECKPOINT, step=saved.step, dir=place, files=[to_json(file) for file in saved.files]
        )

    @contextmanager
    def _timed(self, name: str) -> Iterator[None]:
        begun = time.monotonic()
        try:
            yield
        finally:
            setattr(self.measured, name, getattr(self.measured, name) + time.monotonic() - begun)
