"""The bytes that LitGPT's own layers keep, beside what physics counts of them.

    pip install --no-deps --target FOLDER litgpt==0.4.9 lightning==2.2.5 lightning-utilities \\
        torchmetrics==1.4.0 "setuptools<75"
    PYTHONPATH=FOLDER .venv-train/bin/python -m benchmarks.trainer.litgpt_terms

Tiny models of LitGPT with random weights on the CPU, so that it needs no GPU: the bytes of one sample that
autograd saves in one layer, as the difference of two depths and two numbers of samples. Layers "in 4 bits"
keep their input as bitsandbytes before 0.43.2 does, and are not quantised. Dropout saves a mask of bytes, as
on GPUs. Numbers are for each unit of the hidden width, errors of the counted in % of the held.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import litgpt.config as shapes
import torch
from litgpt import lora
from litgpt import model as whole

from knowledge.core.analytic.litgpt_layers import layer_of
from knowledge.core.domain.adapted_layers import ALL_LINEAR, QUERY_VALUE
from knowledge.core.domain.catalogue import Model

TOKENS, HIDDEN, WIDTH, HEADS, VOCABULARY, RANK = 192, 256, 704, 8, 512, 8
DEPTHS, SAMPLES = (1, 2), (2, 3)
CHUNK = 128  # positions of which LitGPT makes logits at a time
CAPPED_SCORE, SUM = 8.0, 4.0  # bytes of a score that a softcap keeps, and of a sum of fused attention
# LitGPT's name, ours of the family, and heads with keys.
SHAPES = (
    ("Llama-2-7b-hf", "llama", 8),
    ("Llama-3-8B", "llama", 2),
    ("phi-2", "phi", 8),
    ("falcon-7b", "falcon", 1),
    ("stablelm-base-alpha-3b", "gpt_neox", 8),
    ("Gemma-2b", "gemma", 1),
    ("Gemma-2-2b", "gemma2", 4),
)
UNGATED = ("phi", "falcon", "gpt_neox")


@dataclass(frozen=True, slots=True)
class Way:
    """A way to train: where adapters are, None for all weights, and whether layers keep their inputs."""

    name: str
    placed: str | None
    in_4_bits: bool = False


WAYS = (
    Way("adapters on queries and values", QUERY_VALUE),
    Way("adapters on all linear layers", ALL_LINEAR),
    Way("adapters on queries and values, in 4 bits", QUERY_VALUE, in_4_bits=True),
    Way("all weights", None),
)


class KeepingProduct(torch.autograd.Function):
    """A product that keeps its input for nothing, where hooks see it."""

    @staticmethod
    def forward(ctx: Any, given: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(given, weight)
        return torch.nn.functional.linear(given, weight)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
        return gradient @ ctx.saved_tensors[1], None


def shape_of(architecture: str, keys: int, layers: int = 1, vocabulary: int = VOCABULARY) -> Model:
    """The tiny model as the catalogue would have it."""
    gated = architecture not in UNGATED
    head_dim = HIDDEN // HEADS
    layer = 2 * HIDDEN * (HIDDEN + keys * head_dim) + (3 if gated else 2) * HIDDEN * WIDTH
    return Model(
        model_name=f"tiny/{architecture}",
        architecture=architecture,
        parameters=2 * vocabulary * HIDDEN + layers * layer,
        active_parameters=2 * vocabulary * HIDDEN + layers * layer,
        layers=layers,
        hidden=HIDDEN,
        heads=HEADS,
        kv_heads=keys,
        head_dim=head_dim,
        mlp_width=WIDTH,
        mlp_gated=gated,
        vocab=vocabulary,
        max_context=2 * TOKENS,
        tied_embeddings=False,
        attention_layers=layers,
    )


def counted(architecture: str, keys: int, way: Way) -> float:
    """Bytes of a token by physics."""
    shape = shape_of(architecture, keys)
    layer = layer_of(shape, way.placed or ALL_LINEAR)
    learning = layer.full if way.placed is None else layer.dropped + RANK * layer.ranks
    scores = HEADS * (CAPPED_SCORE * TOKENS if architecture == "gemma2" else SUM)
    return layer.kept + learning + scores + (layer.inputs if way.in_4_bits else 0.0)


def held(name: str, keys: int, way: Way) -> float:
    """Bytes of a token that autograd saves in one layer."""
    found = {
        (layers, samples): kept
        for layers in DEPTHS
        for samples, kept in zip(SAMPLES, _held(name, keys, way, layers), strict=True)
    }
    (few, many), (one, two) = DEPTHS, SAMPLES
    more = (found[many, two] - found[many, one]) - (found[few, two] - found[few, one])
    return more / TOKENS


def _held(name: str, keys: int, way: Way, layers: int) -> Iterator[int]:
    model = built(name, keys, way, layers)
    for module in model.modules() if way.in_4_bits else ():
        if isinstance(module, torch.nn.Linear):
            module.forward = _keeping(module.weight)
    own = {_id(one) for one in itertools.chain(model.parameters(), model.buffers())}
    for samples in SAMPLES:
        kept: dict[int, torch.UntypedStorage] = {}

        def keep(tensor: torch.Tensor, kept: dict[int, torch.UntypedStorage] = kept) -> torch.Tensor:
            if _id(tensor) not in own:
                kept[_id(tensor)] = tensor.untyped_storage()
            return tensor.detach()  # one with its graph would hold what holds it, for ever

        stream = model.transformer.wte(torch.randint(1, VOCABULARY, (samples, TOKENS)))
        stream = stream if stream.requires_grad else stream.requires_grad_()
        with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            for block in model.transformer.h:
                stream = block(stream, model.cos[:TOKENS], model.sin[:TOKENS], None, None)
        yield sum(storage.nbytes() for storage in kept.values())


def built(
    name: str, keys: int, way: Way, layers: int, vocabulary: int = VOCABULARY, tokens: int = TOKENS
) -> Any:
    """The tiny model of LitGPT's own code."""
    shapes.name_to_config["tiny"] = {
        **shapes.name_to_config[name],
        "name": "tiny",
        "n_embd": HIDDEN,
        "intermediate_size": WIDTH,
        "n_head": HEADS,
        "n_query_groups": keys,
        "head_size": HIDDEN // HEADS,
        "vocab_size": vocabulary,
        "padded_vocab_size": vocabulary,
        "block_size": 2 * tokens,
    }
    if way.placed is None:
        model = whole.GPT(shapes.Config.from_name("tiny", n_layer=layers))
    else:
        everywhere = way.placed == ALL_LINEAR
        adapters = {"lora_key": everywhere, "lora_projection": everywhere, "lora_mlp": everywhere}
        usual = {
            "lora_r": RANK,
            "lora_alpha": 16,
            "lora_dropout": 0.05,
            "lora_query": True,
            "lora_value": True,
        }
        model = lora.GPT(lora.Config.from_name("tiny", n_layer=layers, **usual, **adapters))
        lora.mark_only_lora_as_trainable(model)
    model.max_seq_length = tokens
    return model.train()


def _keeping(weight: torch.Tensor) -> Any:
    return lambda given: KeepingProduct.apply(given, weight)


def _id(tensor: torch.Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)


def dropped(given: torch.Tensor, p: float, training: bool, *_: bool) -> Any:
    """Dropout as on GPUs, which saves a mask of bytes."""
    return torch.native_dropout(given, p, training)[0]


def main() -> None:
    torch.set_default_dtype(torch.bfloat16)
    torch.nn.functional.dropout = dropped
    for name, architecture, keys in SHAPES:
        for way in WAYS:
            by_physics, by_autograd = counted(architecture, keys, way), held(name, keys, way)
            error = by_physics / by_autograd - 1
            print(f"{name}, {way.name}: {by_autograd / HIDDEN:.3f} held, {error:+.1%}", flush=True)


if __name__ == "__main__":
    main()
