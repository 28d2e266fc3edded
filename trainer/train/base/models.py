"""The base model and its tokenizer, prepared for the tuning.

Code from a model's repository never runs (`trust_remote_code` stays off) and weights come from
safetensors only.
"""

from __future__ import annotations

import os
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from trainer import builtin, roots
from trainer.protocol_parsing import safe_path
from trainer.train import import_gc
from trainer.train.base import random_weights, suitable
from trainer.train.base.adapters import four_bit, with_adapter
from trainer.train.base.attention import choose_kernel
from trainer.train.base.kernels import without_kernels
from trainer.train.base.probe import Reach, probe
from trainer.train.base.scope import scope
from trainer.train.distributed import sharding
from trainer.train.distributed.process_group import World, is_sharded
from trainer.train.errors import HUB_AWAY, NodeFault, TrainError, is_out_of_memory, node_fault
from trainer.train.memory import forget_loading
from trainer.train.settings import TrainingSpec

HUB_ANSWERS_WITHIN_S = 60.0
_LONGEST_WHY = 300  # characters: transformers lists all the classes it has
_NOT_REACHED = "couldn't connect to"  # as transformers says it


@dataclass(frozen=True, slots=True)
class Loaded:
    """The model on its device, trainable parts on.

    scope: which parts learn and which do not.
    slow: which kernels would compute faster, if any.
    """

    model: Any
    tokenizer: Any
    scope: tuple[str, ...]
    slow: str = ""


def load(order: TrainingSpec, world: World, source: str) -> Loaded:
    """The model at `source` (see `locate`) with its tokenizer.

    Where processes share the model (`is_sharded`), it is cut already. Raises TrainError with the remedy.
    """
    with import_gc.resting():
        import transformers.modeling_utils  # noqa: F401 -- any model needs it; left to itself it comes later
        from transformers.utils import logging
    logging.disable_progress_bar()  # bars are noise in a log file
    if not order.offline:
        _limit_waiting()
    suitable.check_precision(order)
    choose_kernel(order)
    try:
        suitable.check_kind(order, _config(source, order))
        tokenizer = _tokenizer(source, order)
        loaded = (_shared if is_sharded(order, world) else _own)(source, tokenizer, order, world)
    except (OSError, ValueError, ImportError, KeyError) as wrong:
        if is_out_of_memory(wrong) or node_fault(wrong):
            raise
        if not order.offline and _NOT_REACHED in str(wrong):  # told without its cause after a time-out
            raise NodeFault(HUB_AWAY) from wrong
        raise TrainError(_why_not(order, source, wrong)) from wrong
    forget_loading(world.device)
    return loaded


def _limit_waiting() -> None:
    """Limit how long the hub's client waits for answers about models.

    It waits without end for these, though not for their files.
    """
    from huggingface_hub import get_session

    get_session().timeout = HUB_ANSWERS_WITHIN_S


def locate(order: TrainingSpec) -> str:
    """Return the folder of the model, or the hub id that transformers resolves.

    Raises TrainError. To be called before the processes meet: among several, transformers saves
    files in the first one only, and a builtin model that another process makes would lack them.
    """
    name = order.spec.model
    if random_weights.is_random(order):
        return str(random_weights.prepare(order))
    if name.startswith(builtin.PREFIX):
        return str(_builtin(name, order))
    if Path(name).is_absolute():
        return str(_local(name, order))
    if not safe_path(name):
        raise TrainError(f"{name!r} is no model: give builtin/NAME, an absolute directory or a hub id.")
    folder = order.models_dir / name
    return str(folder) if (folder / "config.json").is_file() else name


def _local(name: str, order: TrainingSpec) -> Path:
    """Return the real folder of a model directory.

    A folder outside the roots is not even looked at, whatever the portal asked for.
    """
    folder = roots.find(name, order.model_roots)
    config = folder and roots.find(folder / "config.json", order.model_roots)
    if folder and config and not config.is_file():
        raise TrainError(
            f"The model directory {name} does not exist on this node or has no config.json. "
            "Put the model there on every node, or choose another base model."
        )
    if folder is None or config is None or not roots.holds_all(folder, order.model_roots):
        raise TrainError(
            f"The model directory {name} is not below a folder of base models of this node. "
            "Its administrator lists them with --model-roots of the agent; or choose another base model."
        )
    return folder


def _builtin(name: str, order: TrainingSpec) -> Path:
    if name not in builtin.MODELS:
        raise TrainError(f"There is no model {name}; builtin are {', '.join(builtin.MODELS)}.")
    try:
        return builtin.ensure(name, order.models_dir)
    except PermissionError:  # a training under its own user may not write to the agent's folder
        return builtin.ensure(name, order.run_dir / "base")


def _config(source: str, order: TrainingSpec) -> Any:
    from transformers import AutoConfig

    return AutoConfig.from_pretrained(source, local_files_only=order.offline, trust_remote_code=False)


def _tokenizer(source: str, order: TrainingSpec) -> Any:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(source, local_files_only=order.offline, trust_remote_code=False)
    if not tokenizer.is_fast:
        raise TrainError(f"The tokenizer of {order.spec.model} has no tokenizer.json (the fast form).")
    return tokenizer


def _own(source: str, tokenizer: Any, order: TrainingSpec, world: World) -> Loaded:
    """Return a model for this process alone, read straight to its device.

    The host never holds it.
    """
    dtype = _stored_dtype(order)
    if not random_weights.is_random(order):
        model = _pretrained(source, order, dtype, world.device)
    elif order.settings.tuning != "qlora":
        model = random_weights.build(source, order, world.device, dtype)
    else:  # quantising happens while weights are loaded
        if world.first_here:
            random_weights.store(source, order, world.device, dtype)
        world.wait()
        model = _pretrained(source, order, dtype, world.device)
    suitable.check_sizes(order, model, tokenizer)
    reach = None if random_weights.is_random(order) else _probed(model, tokenizer, order)
    suitable.check_stored(order, model, reach)
    notes = scope(model, order, reach)
    slow = without_kernels(model, order, reach)
    return Loaded(_prepared(model, order, reach), tokenizer, notes, slow)


def _shared(source: str, tokenizer: Any, order: TrainingSpec, world: World) -> Loaded:
    """Return this process's shards.

    Rank 0 reads the model into the host's memory and deals it out.
    """
    dtype = _stored_dtype(order)
    config = _config(source, order)
    model = sharding.skeleton(config, dtype)
    suitable.check_sizes(order, model, tokenizer)
    if random_weights.is_random(order):
        notes = scope(model, order, None)
        model = _prepared(model, order, None)
        sharding.shard(model, order, world)
        sharding.fill_at_random(model, world, random_weights.deviation(config))
        return Loaded(model, tokenizer, notes)
    weights = reach = None
    if world.main:
        whole = _pretrained(source, order, dtype, torch.device("cpu"))
        reach = _probed(whole, tokenizer, order)
        suitable.check_stored(order, whole, reach)
        whole = _prepared(whole, order, reach)
        model.generation_config = whole.generation_config
        weights = sharding.named_weights(whole)
    reach = world.from_main(reach)
    notes, slow = scope(model, order, reach), without_kernels(model, order, reach)
    model = _prepared(model, order, reach)
    sharding.shard(model, order, world)
    sharding.fill(model, weights, world)
    return Loaded(model, tokenizer, notes, slow)


def _stored_dtype(order: TrainingSpec) -> torch.dtype:
    """Return the dtype of the stored weights.

    Weights that learn are float32, and autocast computes in the chosen precision.
    """
    dtype: torch.dtype = getattr(torch, order.settings.precision)
    return torch.float32 if order.settings.tuning == "full" else dtype


def _pretrained(source: str, order: TrainingSpec, dtype: torch.dtype, device: torch.device) -> Any:
    from transformers import AutoModelForCausalLM

    quantized = {"quantization_config": four_bit(dtype)} if order.settings.tuning == "qlora" else {}
    model, found = AutoModelForCausalLM.from_pretrained(
        source,
        dtype=dtype,
        device_map={"": device},
        use_safetensors=True,
        local_files_only=order.offline,
        trust_remote_code=False,
        output_loading_info=True,
        **quantized,
    )
    suitable.check_complete(order, model, found["missing_keys"])
    return model


def _probed(model: Any, tokenizer: Any, order: TrainingSpec) -> Reach:
    reach = probe(model, tokenizer, order.spec.model, order.settings.tokens_per_sample)
    suitable.check_direction(order, reach.looks_ahead)
    return reach


def _prepared(model: Any, order: TrainingSpec, reach: Reach | None) -> Any:
    """reach: None where text reaches all of the model."""
    torch.manual_seed(order.settings.seed)  # adapters start equal in every process
    if order.settings.tuning != "full":
        model = with_adapter(model, order, reach)
    elif reach is not None:
        for name, weight in model.named_parameters():
            weight.requires_grad_(weight.requires_grad and name in reach.weights)
    if order.settings.gradient_checkpointing:
        suitable.check_checkpointing(order, model)
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    return model


def _why_not(order: TrainingSpec, source: str, wrong: Exception) -> str:
    name, why = order.spec.model, textwrap.shorten(str(wrong), _LONGEST_WHY, placeholder=" ...")
    if Path(source).is_dir():
        return f"The model {name} cannot be loaded from its directory: {why}"
    if order.offline:
        return (
            f"The model {name} is not on this node, and the node is offline. Put it into the folder "
            f"{name} of the agent's models directory, download it beforehand with `hf download {name}` "
            f"(HF_HOME={os.environ.get('HF_HOME', '')}), or start the agent without its offline option."
        )
    return f"The model {name} cannot be loaded from the hub: {why}"
