"""Values that are settled at submission.

They change what is learnt, so none is ever chosen for speed. `choose_submit_values` keeps the
values that the user fixed and fills in the rest from the tuning, the model and the data.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from knowledge.core.analytic import cost_model
from knowledge.core.analytic.config_table import columns
from knowledge.core.domain import config_space, model_support, tuning_support, workload
from knowledge.core.domain.arrays import Array
from knowledge.core.domain.catalogue import GIB, Catalogue, Model
from knowledge.core.domain.types import Choice, Config, GpuPool, Inventory, Option, Source, Workload
from knowledge.core.domain.wording import counted
from knowledge.core.predict.base import MIN_P_VALID
from trainer.recipes import ALL_LINEAR, DEFAULT_RECIPE, PARAMS, RECIPES, Binds
from trainer.recipes.common import OPTIMISER

SMALL_DATA_ROWS = 2000
SMALL_DATA_EPOCHS = 3.0
LARGE_BATCH, SMALL_BATCH = 16, 8
LEARNING_RATES = {"lora": 2e-4, "qlora": 2e-4, "full": 2e-5}
UNTRAINED_LEARNING_RATE = 2e-3
# Neither figures nor other values depend on these.
INDEPENDENT = frozenset(OPTIMISER) - {"epochs", "max_steps"}
UNSTATED_CONTEXT, UNKNOWN_CONTEXT = 2048, 4096  # of models that state none, and that nobody knows
ALL_LAYERS_LEARN = "Adapters on all linear layers learn the most."
EXPERTS_GET_NONE = (
    "Adapters on all linear layers outside of the experts learn the most; experts themselves get none."
)
SEED = "A fixed seed makes the run repeatable."


@dataclass(frozen=True, slots=True)
class Request:
    """A request for a recommendation.

    It has a model (None: not in the catalogue), the values that a user fixed, data and GPUs.

    catalogue: facts for names, of GPUs as the inventory has them. Requests that are compared share it.
    lender: the catalogue's model whose facts the model has borrowed; empty if they are its own.
    """

    model_name: str
    model: Model | None
    fixed: Mapping[str, Any] = field(hash=False)
    data: Workload
    inventory: Inventory
    catalogue: Catalogue = field(compare=False)
    lender: str = ""
    recipe: str = DEFAULT_RECIPE.name

    @property
    def pools(self) -> tuple[GpuPool, ...]:
        """The pools that the fixed GPU model allows, of nodes that can load the model."""
        return model_support.loading(self._allowed, self.model_name)

    @property
    def unloadable(self) -> str:
        """Why no node can load the model, in words; empty if one can."""
        return model_support.explain_unloadable(self._allowed, self.model_name)

    @property
    def _allowed(self) -> tuple[GpuPool, ...]:
        wanted = self.fixed.get("gpu_model")
        if wanted is None:
            return self.inventory.pools
        return tuple(pool for pool in self.inventory.pools if self.catalogue.same_gpu(pool.gpu_model, wanted))

    def at_dispatch(self) -> Request:
        """Return the request with only those fixed values that bind at dispatch.

        The others are bound by then.
        """
        kept = {name: value for name, value in self.fixed.items() if name in config_space.DISPATCH}
        return replace(self, fixed=kept)

    def of_known_gpus(self) -> Request:
        """Return the request on the pools whose GPU the catalogue has.

        Only those can be predicted.
        """
        return self._on(tuple(p for p in self.inventory.pools if self.catalogue.known_gpu(p.gpu_model)))

    def of_unknown_gpus(self) -> Request:
        """The request on the other pools."""
        return self._on(tuple(p for p in self.inventory.pools if not self.catalogue.known_gpu(p.gpu_model)))

    def _on(self, pools: tuple[GpuPool, ...]) -> Request:
        return replace(self, inventory=replace(self.inventory, pools=pools))


def choose_submit_values(request: Request, tuning: Choice | None = None) -> dict[str, Choice]:
    """Return a choice for every parameter that binds at submission.

    The batch is left out when it depends on the GPUs.

    tuning: the one to take where the user fixed none.
    """
    tuning = tuning or _tuning(request)
    chosen = {
        **_of_the_recipe(request.recipe),
        "tuning": tuning,
        "quantization": _quantization(tuning.value, request),
        "precision": _precision(request),
        "tokens_per_sample": _tokens_per_sample(request),
        "effective_batch_size": _effective_batch(request),
        **_lora(tuning.value, request),
        "learning_rate": _learning_rate(tuning.value, request),
        **_length_of_training(request),
        "seed": Choice(value=PARAMS["seed"].default, by="default", reason=SEED),
    }
    by_user = {name: user_choice(request.fixed[name]) for name in chosen if name in request.fixed}
    return chosen | by_user


def _of_the_recipe(name: str) -> dict[str, Choice]:
    """The stated defaults, for every parameter that nothing here decides."""
    recipe = RECIPES[name]
    params = {name: recipe.params[name] for name in recipe.binding(Binds.SUBMIT)}
    reason = "The default; it does not depend on the model or the data."
    return {
        name: Choice(value=param.default, by="default", reason=param.why or reason)
        for name, param in params.items()
    }


def user_choice(value: Any) -> Choice:
    """A value the user fixed."""
    return Choice(value=value, by="user", reason="You set this value.")


def _tuning(request: Request) -> Choice:
    if request.fixed.get("quantization") == "bnb-4bit":
        return Choice(value="qlora", by="recommended", reason="qlora trains a 4-bit base model.")
    gpus = [pool for pool in request.of_known_gpus().pools if pool.gpu_model != "cpu"]
    cannot = tuning_support.explain_unsupported(gpus, "qlora") or config_space.why_not_four_bits(
        request.model_name, request.catalogue
    )
    possible = gpus and not cannot
    if request.model is not None and possible and request.fixed.get("quantization") is None:
        needs = _least_memory(request, gpus)
        lora, qlora = (float(np.min(needs[name])) / GIB for name in ("lora", "qlora"))
        # Only the former is cut over GPUs, so that on many it may need less of each.
        if not np.any(needs["lora"] <= needs["capacity"]) and qlora < lora:
            return Choice(
                value="qlora",
                by="recommended",
                reason=f"LoRA needs {lora:.0f} GiB on each GPU at least, more than any registered GPU has;"
                f" with 4-bit weights it is {qlora:.0f} GiB.",
            )
    return Choice(value="lora", by="default", reason="An adapter learns well with a fraction of the memory.")


def four_bits_instead(request: Request, tuning: Choice, found: Sequence[Option]) -> Choice | None:
    """Return qlora where LoRA is not likely to fit anywhere, else None.

    It also returns None where somebody chose the tuning.
    """
    is_open = request.fixed.get("tuning") is None and request.fixed.get("quantization") is None
    predicted = request.model is not None and all(option.source is not Source.DEFAULT for option in found)
    chance = max((option.p_valid for option in found), default=0.0)
    if not is_open or tuning.value != "lora" or not predicted or chance >= MIN_P_VALID:
        return None
    lora = f"has a chance of at most {chance:.0%} to run" if found else "fits on no GPU here"
    reason = f"LoRA {lora}; 4-bit weights need less memory."
    return Choice(value="qlora", by="recommended", reason=reason)


def _least_memory(request: Request, pools: list[GpuPool]) -> dict[str, Array]:
    """Return the least bytes that a GPU needs, by tuning, and what it has.

    LoRA is cut over the largest bundle of each pool; 4-bit weights lie whole on each GPU.
    """
    length = int(request.fixed.get("tokens_per_sample", _tokens_per_sample(request).value))
    limit = request.inventory.max_nodes

    def needed(tuning: str, quantization: str, gpus: Callable[[GpuPool], int]) -> Array:
        configs = [
            Config(
                model_name=request.model_name,
                tuning=tuning,
                quantization=quantization,
                gpu_model=pool.gpu_model,
                number_gpus=gpus(pool),
                tokens_per_sample=length,
                per_device_batch_size=1,
                precision="bfloat16",
                **config_space.OUR_TRAINER,
            )
            for pool in pools
        ]
        total: Array = cost_model.memory(columns(configs, request.catalogue)).total
        return cost_model.MEMORY_MARGIN * total

    return {
        "lora": needed("lora", "none", lambda pool: config_space.bundles(pool.node_sizes, limit)[-1][1]),
        "qlora": needed("qlora", "bnb-4bit", lambda _: 1),
        "capacity": np.array([float(pool.memory_bytes) for pool in pools]),
    }


def _quantization(tuning: str, request: Request) -> Choice:
    tuning = request.fixed.get("tuning", tuning)
    if tuning == "qlora":
        return Choice(value="bnb-4bit", by="default", reason="qlora stores the frozen base in 4 bits.")
    return Choice(value="none", by="default", reason=f"{tuning} keeps the base model unquantised.")


def _precision(request: Request) -> Choice:
    pools = request.pools
    if request.fixed.get("gpu_model") == "cpu" or (pools and all(p.gpu_model == "cpu" for p in pools)):
        return Choice(value="float32", by="recommended", reason="CPU cores compute fastest in float32.")
    known = (request.catalogue.known_gpu(pool.gpu_model) for pool in pools)
    gpus = [gpu for gpu in known if gpu and gpu.gpu_model != "cpu"]
    if gpus and all(gpu.bf16_flops is None for gpu in gpus):
        names = ", ".join(gpu.gpu_model for gpu in gpus)
        return Choice(value="float16", by="recommended", reason=f"{names} has no bfloat16 units.")
    return Choice(
        value="bfloat16", by="default", reason="bfloat16 is fast on today's GPUs and needs no loss scaling."
    )


def _tokens_per_sample(request: Request) -> Choice:
    context = (request.model.max_context or UNSTATED_CONTEXT) if request.model else UNKNOWN_CONTEXT
    length = workload.recommended_length(request.data, context)
    kept = workload.kept_share(request.data, length)
    reason = (
        f"{kept:.1%} of the rows have at most {length:,} tokens; longer rows are truncated, which keeps"
        f" {workload.kept_tokens(request.data, length):.1%} of all tokens."
        if kept < 1
        else f"No row has more than {length:,} tokens."
    )
    return Choice(value=length, by="recommended", reason=reason)


def _effective_batch(request: Request) -> Choice:
    rows = request.data.rows
    batch = LARGE_BATCH if rows >= SMALL_DATA_ROWS else SMALL_BATCH
    gpus = request.fixed.get("number_gpus", 1)
    whole = math.ceil(batch / gpus) * gpus
    # Epochs are laid end to end, so an epoch may end within a step.
    steps = f"{rows / whole:,.2f}".rstrip("0").rstrip(".")
    reason = (
        f"With {counted(whole, 'sample')} per step, one epoch over {counted(rows, 'row')} is"
        f" {steps} step{'' if steps == '1' else 's'}."
    )
    return Choice(value=whole, by="recommended", reason=reason)


def _lora(tuning: str, request: Request) -> dict[str, Choice]:
    if request.fixed.get("tuning", tuning) == "full":
        none = Choice(value=None, by="default", reason="Full fine-tuning has no adapter.")
        return dict.fromkeys(("lora_r", "lora_alpha", "target_modules"), none)
    rank = request.fixed.get("lora_r", 16)
    experts = request.model is not None and bool(request.model.experts)
    return {
        "lora_r": Choice(value=16, by="default", reason="Rank 16 is enough for most tasks."),
        "lora_alpha": Choice(value=2 * rank, by="default", reason=f"Twice the rank ({rank}), as is usual."),
        "target_modules": Choice(
            value=ALL_LINEAR, by="default", reason=EXPERTS_GET_NONE if experts else ALL_LAYERS_LEARN
        ),
    }


def base_learning_rate(model_name: str, tuning: str) -> float:
    """The rate at which the model is trained unless somebody sets another one."""
    if model_name.startswith("builtin/"):
        return UNTRAINED_LEARNING_RATE
    return LEARNING_RATES.get(tuning, 2e-4)


def _learning_rate(tuning: str, request: Request) -> Choice:
    tuning = request.fixed.get("tuning", tuning)
    rate = base_learning_rate(request.model_name, tuning)
    if request.model_name.startswith("builtin/"):
        reason = "The built-in models start from random weights and need large steps."
        return Choice(value=rate, by="default", reason=reason)
    return Choice(value=rate, by="default", reason=f"{rate:g} is the usual starting point for {tuning}.")


def _length_of_training(request: Request) -> dict[str, Choice]:
    unused = "Not used: {} set the length of the training."
    if "max_steps" in request.fixed:
        return {
            "epochs": Choice(value=None, by="default", reason=unused.format("the optimiser steps")),
            "max_steps": user_choice(request.fixed["max_steps"]),
        }
    rows = request.data.rows
    small = rows < SMALL_DATA_ROWS
    epochs = SMALL_DATA_EPOCHS if small else 1.0
    reason = (
        f"With only {counted(rows, 'row')}, {epochs:g} passes over the data help the model learn them."
        if small
        else f"One pass over {rows:,} rows is enough and avoids overfitting."
    )
    return {
        "epochs": Choice(value=epochs, by="recommended", reason=reason),
        "max_steps": Choice(value=None, by="default", reason=unused.format("the epochs")),
    }


def batch_choices(request: Request, default: Choice) -> tuple[Choice, ...]:
    """The effective batches to try, nearest to the default first.

    One, unless it was fixed in part and so hangs on the number of GPUs.
    """
    fixed = request.fixed
    unit = fixed.get("per_device_batch_size", 1)
    accumulation = fixed.get("gradient_accumulation_steps")
    if default.by == "user" or (unit == 1 and accumulation is None):
        return (default,)
    counts = {
        gpus
        for pool in request.pools
        for _, gpus in config_space.open_bundles(pool.node_sizes, fixed, request.inventory.max_nodes)
    }
    sizes = {
        unit * gpus * (accumulation or max(1, math.floor(default.value / (unit * gpus) + 0.5)))
        for gpus in counts or {fixed.get("number_gpus", 1)}
    }
    reason = "{} samples per step follow from the batch settings that you chose."
    nearest = sorted(sizes, key=lambda size: (abs(math.log(size / default.value)), size))
    return tuple(Choice(value=size, by="recommended", reason=reason.format(size)) for size in nearest)
