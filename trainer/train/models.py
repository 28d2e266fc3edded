"""The base model and its tokenizer, prepared for the method. Code from a model's repository never runs
(`trust_remote_code` stays off) and weights come from safetensors only."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import torch

from trainer import builtin, roots
from trainer.train import collector, random_weights, sharding
from trainer.train.errors import HUB_AWAY, NodeFault, TrainError, is_out_of_memory, node_fault
from trainer.train.memory import forget_loading
from trainer.train.settings import Order
from trainer.train.world import World, is_sharded
from trainer.wire import safe_path

HUB_ANSWERS_WITHIN_S = 60.0
_NOT_REACHED = "couldn't connect to"  # as transformers says it


def load(order: Order, world: World, source: str) -> tuple[Any, Any]:
    """The model at `source` (see `locate`) on its device, trainable parts on, and the tokenizer.

    Where processes share the model (`is_sharded`), it is cut already. Raises TrainError with the remedy.
    """
    with collector.resting():
        import transformers.modeling_utils  # noqa: F401 -- any model needs it; left to itself it comes later
        from transformers.utils import logging
    logging.disable_progress_bar()  # bars are noise in a log file
    if not order.offline:
        _limit_waiting()
    try:
        tokenizer = _tokenizer(source, order)
        model = (_shared if is_sharded(order, world) else _own)(source, tokenizer, order, world)
    except (OSError, ValueError, ImportError, KeyError) as wrong:
        if is_out_of_memory(wrong) or node_fault(wrong):
            raise
        if not order.offline and _NOT_REACHED in str(wrong):  # told without its cause after a time-out
            raise NodeFault(HUB_AWAY) from wrong
        raise TrainError(_why_not(order, source, wrong)) from wrong
    forget_loading(world.device)
    return model, tokenizer


def _limit_waiting() -> None:
    """The hub's client waits without end for answers about models, though not for their files."""
    from huggingface_hub import get_session

    get_session().timeout = HUB_ANSWERS_WITHIN_S


def locate(order: Order) -> str:
    """The folder of the model, or the hub id that transformers resolves. Raises TrainError.

    To be called before the processes meet: among several, transformers saves files in the first one only, and
    a builtin model that another process makes would lack them.
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


def _local(name: str, order: Order) -> Path:
    """The real folder. Whatever the portal asked for, what lies outside the roots is not even looked at."""
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


def _builtin(name: str, order: Order) -> Path:
    if name not in builtin.MODELS:
        raise TrainError(f"There is no model {name}; builtin are {', '.join(builtin.MODELS)}.")
    try:
        return builtin.ensure(name, order.models_dir)
    except PermissionError:  # a training under its own user may not write to the agent's folder
        return builtin.ensure(name, order.run_dir / "base")


def _tokenizer(source: str, order: Order) -> Any:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(source, local_files_only=order.offline, trust_remote_code=False)
    if not tokenizer.is_fast:
        raise TrainError(f"The tokenizer of {order.spec.model} has no tokenizer.json (the fast form).")
    return tokenizer


def _own(source: str, tokenizer: Any, order: Order, world: World) -> Any:
    """A model for this process alone, read straight to its device: the host never holds it."""
    dtype = _stored_dtype(order)
    if not random_weights.is_random(order):
        model = _pretrained(source, order, dtype, world.device)
    elif order.settings.method != "qlora":
        model = random_weights.build(source, order, world.device, dtype)
    else:  # quantising happens while weights are loaded
        if world.first_here:
            random_weights.store(source, order, world.device, dtype)
        world.wait()
        model = _pretrained(source, order, dtype, world.device)
    _check(order, model, tokenizer)
    return _prepared(model, order)


def _shared(source: str, tokenizer: Any, order: Order, world: World) -> Any:
    """This process's shards. Rank 0 reads the model into the host's memory and deals it out."""
    from transformers import AutoConfig

    dtype = _stored_dtype(order)
    config = AutoConfig.from_pretrained(source, local_files_only=order.offline, trust_remote_code=False)
    model = sharding.skeleton(config, dtype)
    _check(order, model, tokenizer)
    model = _prepared(model, order)
    if random_weights.is_random(order):
        sharding.shard(model, order, world)
        sharding.fill_at_random(model, world, random_weights.deviation(config))
        return model
    weights = None
    if world.main:
        whole = _prepared(_pretrained(source, order, dtype, torch.device("cpu")), order)
        model.generation_config = whole.generation_config
        weights = sharding.named_weights(whole)
    sharding.shard(model, order, world)
    sharding.fill(model, weights, world)
    return model


def _stored_dtype(order: Order) -> torch.dtype:
    """Of the weights: what learns is float32, and autocast computes in the chosen precision."""
    dtype: torch.dtype = getattr(torch, order.settings.precision)
    if order.device == "cuda" and dtype is torch.bfloat16 and not torch.cuda.is_bf16_supported():
        raise TrainError("This GPU has no bfloat16; choose the precision float16.")
    return torch.float32 if order.settings.method == "full" else dtype


def _pretrained(source: str, order: Order, dtype: torch.dtype, device: torch.device) -> Any:
    from transformers import AutoModelForCausalLM

    four_bit = {"quantization_config": _four_bit(dtype)} if order.settings.method == "qlora" else {}
    return AutoModelForCausalLM.from_pretrained(
        source,
        dtype=dtype,
        device_map={"": device},
        use_safetensors=True,
        local_files_only=order.offline,
        trust_remote_code=False,
        **four_bit,
    )


def _prepared(model: Any, order: Order) -> Any:
    torch.manual_seed(order.settings.seed)  # adapters start equal in every process
    if order.settings.method != "full":
        model = _with_adapter(model, order)
    if order.settings.gradient_checkpointing:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    return model


def _four_bit(dtype: torch.dtype) -> Any:
    """NF4 with double quantisation (Dettmers et al., QLoRA, 2023)."""
    import importlib.util

    if importlib.util.find_spec("bitsandbytes") is None:
        raise TrainError(
            "The method qlora needs the package bitsandbytes on this node; install it or choose lora."
        )
    from transformers import BitsAndBytesConfig

    return BitsAndBytesConfig(
        load_in_4bit=True,
        bnb_4bit_quant_type="nf4",
        bnb_4bit_use_double_quant=True,
        bnb_4bit_compute_dtype=dtype,
    )


def _with_adapter(model: Any, order: Order) -> Any:
    """LoRA on all linear layers but the head (Hu et al., 2021); adapters stay in float32."""
    from peft import LoraConfig, get_peft_model

    settings = order.settings
    config = LoraConfig(
        r=settings.lora_r,
        lora_alpha=settings.lora_alpha,
        lora_dropout=0.0,
        target_modules="all-linear",
        task_type="CAUSAL_LM",
    )
    try:
        adapted = get_peft_model(model, config)
    except ValueError as wrong:  # of architectures that are no transformers, as Mamba
        raise TrainError(
            f"LoRA does not fit {order.spec.model}; choose the method full. ({wrong})"
        ) from wrong
    adapted.peft_config["default"].base_model_name_or_path = order.spec.model
    return adapted


def _check(order: Order, model: Any, tokenizer: Any) -> None:
    config = model.config.get_text_config()
    context = getattr(config, "max_position_embeddings", None)
    if context and order.settings.tokens_per_sample > context:
        raise TrainError(
            f"tokens_per_sample is {order.settings.tokens_per_sample}, but {order.spec.model} reads at most "
            f"{context} tokens; choose at most {context}."
        )
    if len(tokenizer) > model.get_input_embeddings().weight.shape[0]:
        raise TrainError(
            f"The tokenizer of {order.spec.model} has more tokens than the model; is it the right one?"
        )


def _why_not(order: Order, source: str, wrong: Exception) -> str:
    name = order.spec.model
    if Path(source).is_dir():
        return f"The model {name} cannot be loaded from its directory: {wrong}"
    if order.offline:
        return (
            f"The model {name} is not on this node, and the node is offline. Put it into the folder "
            f"{name} of the agent's models directory, download it beforehand with `hf download {name}` "
            f"(HF_HOME={os.environ.get('HF_HOME', '')}), or start the agent without its offline option."
        )
    return f"The model {name} cannot be loaded from the hub: {wrong}"
