"""Tiny models of many architectures, and the bytes that PyTorch holds to train them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch
from peft import LoraConfig
from transformers import AutoConfig, AutoModelForCausalLM

from benchmarks.trainer.fake_gpu import dropped
from knowledge.core.domain.types import Config
from trainer.recipes import ALL_LINEAR, ATTENTION
from trainer.train.base.adapters import adapt, targets

TOKENS = 192  # of a sample
HIDDEN, WIDTH, HEADS, KV_HEADS, VOCABULARY, RANK = 256, 704, 8, 2, 512, 8
DEPTHS, SAMPLES = (1, 2), (2, 3)  # of one sample, some copies are views

_USUAL: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": HIDDEN,
    "intermediate_size": WIDTH,
    "num_attention_heads": HEADS,
    "num_key_value_heads": KV_HEADS,
    "max_position_embeddings": TOKENS,  # few, since some learn a vector for each
    "pad_token_id": 0,
}
_HEAD = {"head_dim": HIDDEN // HEADS}
_NO_GROUPS = {"num_key_value_heads": HEADS}
_GPT2 = {"n_embd": HIDDEN, "n_inner": WIDTH, "n_head": HEADS, "n_positions": TOKENS}
_MPT = {"d_model": HIDDEN, "n_heads": HEADS, "max_seq_len": TOKENS}
_COMPRESSED = {  # DeepSeek's keys and values, and experts behind no dense layer
    "n_routed_experts": 8,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 128,
    "n_shared_experts": 2,
    "first_k_dense_replace": 0,
    "n_group": 1,
    "topk_group": 1,
    "kv_lora_rank": 64,
    "q_lora_rank": None,
    "qk_rope_head_dim": 16,
    "qk_nope_head_dim": 32,
    "v_head_dim": 48,  # as wide as keys, without which PyTorch has no fused attention on a CPU
}
_NO_DROPOUT = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
# Differences from the usual: of an architecture, the keys of its config.json.
ARCHITECTURES: dict[str, dict[str, Any]] = {
    "llama": {},
    "mistral": _HEAD,
    "qwen2": {},
    "qwen3": _HEAD,
    "gemma": _HEAD,
    "gemma2": _HEAD,
    "gemma3_text": _HEAD,
    "granite": {},
    "bloom": {"n_head": HEADS, "intermediate_size": 4 * HIDDEN},
    "cohere": {},
    "cohere2": {**_HEAD, "sliding_window": TOKENS // 3},
    "mpt": {"vocab_size": VOCABULARY, **_MPT},
    "nemotron": _HEAD,
    "olmo": {},
    "olmo2": {},
    "phi": _NO_GROUPS,
    "phi3": {},
    "smollm3": {},
    "persimmon": {**_NO_GROUPS, "attention_dropout": 0.0, "hidden_dropout": 0.1},
    "gpt2": {"vocab_size": VOCABULARY, **_GPT2, "attn_pdrop": 0.0},
    "gpt_neox": _NO_GROUPS,
    "opt": {"word_embed_proj_dim": HIDDEN, "ffn_dim": WIDTH, "dropout": 0.1, **_NO_GROUPS},
    "qwen3_moe": {**_HEAD, "num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 128},
    "olmoe": {**_NO_GROUPS, "num_experts": 8, "num_experts_per_tok": 2, "intermediate_size": 128},
    "phimoe": {"num_local_experts": 4, "num_experts_per_tok": 2},
    "starcoder2": {"residual_dropout": 0.1, "attention_dropout": 0.0},
    "qwen2_moe": {
        "num_experts": 8,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 128,
        "shared_expert_intermediate_size": 320,
    },
    "deepseek_v2": {**_NO_GROUPS, **_COMPRESSED},
    "deepseek_v3": {**_NO_GROUPS, **_COMPRESSED, "q_lora_rank": 96},
    "gptj": {"vocab_size": VOCABULARY, **_GPT2, **_NO_DROPOUT, "rotary_dim": 16},
    "gpt_oss": {**_HEAD, "num_local_experts": 4, "num_experts_per_tok": 2},
    "mixtral": {"num_local_experts": 4, "num_experts_per_tok": 2},
}
# Those that drop scores, which fused attention on a CPU does not; where eager, they do.
DROPPED_SCORES = {"gpt2": "attn_pdrop", "starcoder2": "attention_dropout"}
DEPTH = {"gpt2": "n_layer", "mpt": "n_layers", "gptj": "n_layer"}


@dataclass(frozen=True, slots=True)
class Case:
    """One way to train: what learns, the width of weights and of the computation, and the attention.

    placed: where adapters are. keeping: linear layers keep their input as bitsandbytes before 0.43.2 makes
    its 4-bit ones; they are not quantised.
    """

    name: str
    tuning: str
    weights: torch.dtype
    compute: torch.dtype
    state: str
    eager: bool = False
    placed: str = ALL_LINEAR
    keeping: bool = False

    def config(self, model_name: str) -> Config:
        """The configuration as the product states it, of one sample at a time."""
        return Config(
            model_name=model_name,
            tuning="qlora" if self.keeping else self.tuning,
            quantization="bnb-4bit" if self.keeping else None,
            unquantized_float32=False if self.keeping else None,
            software="bitsandbytes 0.42.0" if self.keeping else None,
            gpu_model="MI300X",  # where heads share keys in float32, too, as they do here on the CPU
            number_gpus=1,
            tokens_per_sample=TOKENS,
            per_device_batch_size=1,
            precision=str(self.compute).removeprefix("torch."),
            lora_r=RANK if self.tuning == "lora" else None,
            target_modules=self.placed if self.tuning == "lora" else None,
            optimizer_state=self.state,
            flash_attention=False if self.eager else None,
            chunked_loss=self.state == "adamw-fp32",  # our trainer's, as it computes the rest
            gradient_checkpointing=False,
        )


_WAYS = (
    Case("all weights, float32", "full", torch.float32, torch.float32, "adamw-fp32"),
    Case("all weights, float32 under autocast", "full", torch.float32, torch.bfloat16, "adamw-fp32"),
    Case("all weights, bfloat16", "full", torch.bfloat16, torch.bfloat16, "adamw-bf16"),
    Case("LoRA, float32", "lora", torch.float32, torch.float32, "adamw-fp32"),
    Case("LoRA in float32 on bfloat16", "lora", torch.bfloat16, torch.bfloat16, "adamw-fp32"),
    Case("LoRA, bfloat16", "lora", torch.bfloat16, torch.bfloat16, "adamw-bf16"),
    Case(
        "LoRA on attention, bfloat16", "lora", torch.bfloat16, torch.bfloat16, "adamw-bf16", placed=ATTENTION
    ),
    Case("the same in 4 bits", "lora", torch.bfloat16, torch.bfloat16, "adamw-bf16", False, ATTENTION, True),
)
CASES = tuple(replace(way, eager=eager) for eager in (False, True) for way in _WAYS)


def configuration(architecture: str, layers: int) -> Any:
    """The config.json of the tiny model."""
    own = ARCHITECTURES[architecture]
    usual = {} if architecture in DEPTH else _USUAL
    return AutoConfig.for_model(
        architecture, **{**usual, **own, DEPTH.get(architecture, "num_hidden_layers"): layers}
    )


def built(architecture: str, case: Case, layers: int) -> Any:
    """The model as the trainer prepares it."""
    torch.manual_seed(0)
    attention = "eager" if case.eager else "sdpa"
    config = configuration(architecture, layers)
    if case.eager and architecture in DROPPED_SCORES:
        setattr(config, DROPPED_SCORES[architecture], 0.1)
    model = AutoModelForCausalLM.from_config(config, dtype=case.weights, attn_implementation=attention)
    if case.tuning == "lora":
        names = list(targets(model, None, case.placed))
        if case.keeping:
            _keep_inputs(model)
        model = adapt(model, LoraConfig(r=RANK, target_modules=names, task_type="CAUSAL_LM"))
        if case.state == "adamw-bf16":
            model = model.to(torch.bfloat16)
    return model.train()


class KeptInput(torch.autograd.Function):
    """The input of a layer, kept though nothing of the layer learns."""

    @staticmethod
    def forward(ctx: Any, given: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(given)
        return given.view_as(given)

    @staticmethod
    def backward(_: Any, gradient: torch.Tensor) -> torch.Tensor:
        return gradient


def _keep_inputs(model: Any) -> None:
    """Let all linear layers but the head keep their input."""
    for name in targets(model, None):
        layer = model.get_submodule(name)
        layer.register_forward_pre_hook(lambda _, given: (KeptInput.apply(given[0]), *given[1:]))


def kept_by_layer(architecture: str, case: Case, checkpointing: bool) -> float:
    """Bytes that one layer keeps for one sample."""
    (few, many), (one, two) = DEPTHS, SAMPLES
    found = {
        (layers, samples): kept
        for layers in DEPTHS
        for samples, kept in zip(SAMPLES, _kept(architecture, case, layers, checkpointing), strict=True)
    }
    more = (found[many, two] - found[many, one]) - (found[few, two] - found[few, one])
    return more / (many - few) / (two - one)


def _kept(architecture: str, case: Case, layers: int, checkpointing: bool) -> Iterator[int]:
    """Bytes that the whole model keeps, for each number of samples."""
    model = built(architecture, case, layers)
    if checkpointing:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    body = model.base_model.model if case.tuning == "lora" else model
    own = {id_(weight) for weight in itertools.chain(model.parameters(), model.buffers())}
    for samples in SAMPLES:
        held: dict[int, torch.UntypedStorage] = {}

        def keep(tensor: torch.Tensor, held: dict[int, torch.UntypedStorage] = held) -> torch.Tensor:
            if id_(tensor) not in own:
                held[id_(tensor)] = tensor.untyped_storage()
            return tensor.detach()  # one with its graph would hold what holds it, for ever

        ids = torch.randint(1, VOCABULARY, (samples, TOKENS))
        with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor), _cast(case):
            # kept until it is counted, lest storages share an address one after the other
            result = getattr(body, body.base_model_prefix)(input_ids=ids, use_cache=False)
        yield sum(storage.nbytes() for storage in held.values())
        del result


def id_(tensor: torch.Tensor) -> int:
    """The key that tells one storage from another."""
    return int(tensor.untyped_storage()._cdata)


def objects(architecture: str, case: Case) -> dict[str, int]:
    """Bytes of weights, gradients and optimiser states after one step."""
    model = built(architecture, case, DEPTHS[1])
    learning = [weight for weight in model.parameters() if weight.requires_grad]
    optimizer = torch.optim.AdamW(learning, lr=1e-4)
    ids = torch.randint(1, VOCABULARY, (1, 16))
    with _cast(case):
        model(input_ids=ids, labels=ids).loss.backward()
    gradients = [weight.grad for weight in learning if weight.grad is not None]
    optimizer.step()
    states = [value for state in optimizer.state.values() for value in state.values() if value.dim()]
    frozen = [weight for weight in model.parameters() if not weight.requires_grad]
    if case.tuning == "lora":
        return {"weights": _bytes(frozen), "adapters": _bytes([*learning, *gradients, *states])}
    return {"weights": _bytes(learning), "gradients": _bytes(gradients), "optimizer": _bytes(states)}


def _bytes(tensors: list[torch.Tensor]) -> int:
    return sum({id_(tensor): tensor.untyped_storage().nbytes() for tensor in tensors}.values())


@contextmanager
def _cast(case: Case) -> Iterator[None]:
    """Autocast and dropout as on GPUs: there layer norms, powers and softmax are computed in float32."""
    enabled = case.state == "adamw-fp32" and case.compute is not torch.float32
    norm, power, shares = torch.nn.functional.layer_norm, torch.pow, torch.nn.functional.softmax
    drop, torch.nn.functional.dropout = torch.nn.functional.dropout, dropped
    try:
        if enabled:
            torch.nn.functional.layer_norm, torch.pow = _in_float32(norm), _in_float32(power)
            torch.nn.functional.softmax = _in_float32(shares)
        with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
            yield
    finally:
        torch.nn.functional.layer_norm, torch.pow = norm, power
        torch.nn.functional.softmax, torch.nn.functional.dropout = shares, drop


def _in_float32(operation: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    def compute(*given: Any, **named: Any) -> torch.Tensor:
        if named.get("dtype"):  # a width that is asked for stays
            return operation(*given, **named)
        with torch.autocast("cpu", enabled=False):
            return operation(*map(_widened, given), **{name: _widened(one) for name, one in named.items()})

    return compute


def _widened(value: Any) -> Any:
    return value.float() if isinstance(value, torch.Tensor) and value.is_floating_point() else value
