"""Supervised fine-tuning: the entry of the recipe `sft`."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch

from trainer.protocol import ReportKind
from trainer.recipes.common import LOOP_CONSTANTS, TrainingSettings
from trainer.train import checkpoint_state, output
from trainer.train.base.attention import choose_plans
from trainer.train.base.models import Loaded, load, locate
from trainer.train.base.random_weights import is_random
from trainer.train.base.scope import size
from trainer.train.data import Data, embeddings, padding, prepare
from trainer.train.distributed.process_group import World, is_sharded, joined, replicate
from trainer.train.events import Journal, RunFigures
from trainer.train.loop import Loop, StopRequest
from trainer.train.loss import TokenLoss
from trainer.train.memory import capacity_bytes, peak_bytes
from trainer.train.plan import StepPlan
from trainer.train.settings import TrainingSpec


def train(
    order: TrainingSpec,
    measured: RunFigures,
    stop: StopRequest,
    started: float,
    loss_of: Callable[[Any], TokenLoss] = TokenLoss,
) -> None:
    """Fill RUN_DIR/output and the figures.

    started: time.monotonic() of the process's start. loss_of: a model's loss.
    Raises TrainError with a reason for the user, Stopped after saving a checkpoint on request,
    and any error of torch; `errors.is_out_of_memory` tells when memory ran out.
    """
    source = locate(order)
    with joined(order, lambda: stop.requested) as world:
        # Each node's first process shows its agent that it lives; rank 0 alone reports the progress.
        journal = Journal(order.run_dir / "events.jsonl" if world.first_here else None, tells=world.main)
        measured.software = output.software()
        measured.memory_capacity_bytes = capacity_bytes(world.device)
        try:
            loop, base, data = _prepare(order, world, source, journal, measured, stop, loss_of)
            measured.startup_s = time.monotonic() - started
            _report_start(loop, base, data)
            loop.run()
            _write_output(loop, base, data)
        finally:
            measured.peak_memory_bytes = peak_bytes(world.device)
        measured.peak_memory_bytes = int(world.max(measured.peak_memory_bytes)[0])
        journal.event(ReportKind.MEMORY, memory_bytes=measured.peak_memory_bytes)


def _prepare(
    order: TrainingSpec,
    world: World,
    source: str,
    journal: Journal,
    measured: RunFigures,
    stop: StopRequest,
    loss_of: Callable[[Any], TokenLoss],
) -> tuple[Loop, Loaded, Data]:
    """Model, data and optimiser, where a checkpoint left them if there is one."""
    settings = order.settings
    journal.say(f"loading {order.spec.model}")  # the last line where a hub never answers
    base = load(order, world, source)
    model, tokenizer = base.model, base.tokenizer
    journal.alive(peak_bytes(world.device))
    earlier = _earlier(order, world)
    generation = getattr(model, "generation_config", None)
    data = prepare(
        order, world, tokenizer, journal, lambda: stop.requested, earlier, generation, embeddings(model)
    )
    journal.alive(peak_bytes(world.device))
    plan = StepPlan(
        lengths=data.train.lengths,
        seed=settings.seed,
        batch=order.batch,
        micro=settings.per_device_batch_size,
        epochs=settings.epochs,
        max_steps=settings.max_steps,
    )
    choose_plans(order, plan)
    model.train()
    loss = loss_of(model)
    loop = Loop(
        order=order,
        world=world,
        model=model,
        loss=loss,
        forward=loss if is_sharded(order, world) else replicate(loss, world),
        optimizer=_optimizer(model, settings),
        scaler=torch.amp.GradScaler(world.device.type, enabled=settings.precision == "float16"),
        plan=plan,
        train=data.train,
        validation=data.validation,
        pad=padding(tokenizer, model),
        identity=_identity(order, plan, data),
        journal=journal,
        measured=measured,
        stop=stop,
    )
    measured.total_steps = plan.steps
    if order.resume_dir is not None:
        step = order.spec.resume.step if order.spec.resume else None
        loop.resume(checkpoint_state.read(order.resume_dir, loop.identity, step))
    return loop, base, data


def _optimizer(model: Any, settings: TrainingSettings) -> torch.optim.AdamW:
    """AdamW over all that learns; matrices alone decay, as is usual."""
    learning = [weight for _, weight in checkpoint_state.trainable(model)]
    groups = [
        {"params": [weight for weight in learning if weight.ndim > 1], "weight_decay": settings.weight_decay},
        {"params": [weight for weight in learning if weight.ndim <= 1], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(
        [group for group in groups if group["params"]],
        betas=(LOOP_CONSTANTS["adam_beta1"].value, settings.adam_beta2),
        fused=True,  # without temporary copies of all that learns, which cost as much memory as the weights
    )


def _earlier(order: TrainingSpec, world: World) -> dict[str, Any]:
    """Return the identity in the checkpoint to go on from, once that was checked.

    It is empty without one.
    """
    if order.resume_dir is None:
        return {}
    if world.first_here:
        checkpoint_state.check(order.resume_dir)
    world.wait()
    return checkpoint_state.identity(order.resume_dir)


def _identity(order: TrainingSpec, plan: StepPlan, data: Data) -> dict[str, Any]:
    """Return values that must be equal for a checkpoint to be resumed.

    How many GPUs share the batch may differ.
    """
    return {
        "model": order.spec.model,
        **order.recipe.identity(order.settings),
        "rows": len(plan.lengths),
        "batch": plan.batch,
        "order_within_step": "sorted",
        "steps": plan.steps,
        **data.identity,
    }


def _report_start(loop: Loop, base: Loaded, data: Data) -> None:
    plan = loop.plan
    parameters = sum(map(size, loop.model.parameters()))
    trainable = sum(weight.numel() for _, weight in checkpoint_state.trainable(loop.model))
    loop.journal.say(f"{loop.order.spec.model}: {parameters:,} parameters, {trainable:,} of them learn")
    for sentence in filter(None, (*base.scope, base.slow)):
        loop.journal.say(sentence)
    loop.journal.say(f"{len(plan.lengths):,} rows, {plan.steps:,} steps of {plan.batch} rows")
    if loop.measured.step:
        loop.journal.say(f"going on after step {loop.measured.step}")
    loop.journal.event(
        ReportKind.START,
        tokens_total=plan.tokens_total,
        row_tokens=sum(plan.lengths),
        rows=len(plan.lengths),
        steps_total=plan.steps,
        startup_s=loop.measured.startup_s,
        parameters=parameters,
        trainable_parameters=trainable,
        data_notes=list(data.told),
    )


def _write_output(loop: Loop, base: Loaded, data: Data) -> None:
    begun = time.monotonic()
    full = loop.order.settings.tuning == "full"
    # of random weights nothing is kept, and those of a large model fill the host's memory
    random = is_random(loop.order)
    weights = {} if random else checkpoint_state.weights(loop.model, keep=loop.world.main, frozen=full)
    if loop.world.main:
        learnt = output.Learnt(weights, data.ends)
        loop.measured.output = output.write(loop.order, base, learnt, loop.measured, loop.journal.rows)
        for sentence in loop.measured.output_warnings:
            loop.journal.say(f"warning: {sentence}")
    loop.measured.saving_s += time.monotonic() - begun
