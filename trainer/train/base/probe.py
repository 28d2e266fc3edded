"""One pass of a few tokens through a base model.

It shows which parts text reaches, and whether a token sees later ones. Both follow from the
gradient alone, so no architecture needs to be known by name. Towers for images and sound, and
layers that attend to them, stay as they are: a part that text never reaches can learn nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from trainer.train.errors import TrainError, is_out_of_memory, node_fault

TEXT = "Seven ships sailed east at dawn, and none of them came back before the winter."
TOKENS = 16
_LEAK = 1e-4  # of the largest gradient; exactly 0 where tokens cannot see later ones, 3e-3 and more in BERT


@dataclass(frozen=True, slots=True)
class Reach:
    """Modules that text passes through and weights that its logits depend on.

    Both are given by name.
    """

    modules: frozenset[str]
    weights: frozenset[str]
    looks_ahead: bool


def probe(model: Any, tokenizer: Any, name: str) -> Reach:
    """Find out what text reaches in a model.

    To be called before adapters and shards. No weight gets a gradient. The pass is in training
    mode: some architectures take another path then, and some refuse text alone. Raises
    TrainError.
    """
    ids = torch.tensor([_ids(tokenizer)], device=model.get_input_embeddings().weight.device)
    model.train()
    try:
        with _watched(model) as (called, embedded), torch.enable_grad():
            logits = model(input_ids=ids, attention_mask=torch.ones_like(ids), use_cache=False).logits
        return Reach(frozenset(called), frozenset(_leaves(model, logits)), _looks_ahead(logits, embedded))
    except Exception as wrong:  # a model is a program of its author: anything may go wrong
        if is_out_of_memory(wrong) or node_fault(wrong):
            raise
        raise TrainError(f"The model {name} does not read plain text: {str(wrong)[:300]}") from wrong


def _ids(tokenizer: Any) -> list[int]:
    ids: list[int] = tokenizer(TEXT, add_special_tokens=False)["input_ids"][:TOKENS]
    return ids if len(ids) > 1 else [*range(TOKENS)]


@contextmanager
def _watched(model: Any) -> Iterator[tuple[set[str], list[torch.Tensor]]]:
    """Yield the names of the modules called and the output of the embeddings.

    Both are filled in meanwhile.
    """
    called: set[str] = set()
    embedded: list[torch.Tensor] = []

    def embed(_module: Any, _args: Any, output: torch.Tensor) -> torch.Tensor:
        embedded.append(output if output.requires_grad else output.requires_grad_())
        return output

    with ExitStack() as hooks:
        for name, module in model.named_modules():
            hooks.enter_context(module.register_forward_hook(lambda *_, name=name: called.add(name)))
        hooks.enter_context(model.get_input_embeddings().register_forward_hook(embed))
        yield called, embedded


def _leaves(model: Any, output: torch.Tensor) -> Iterator[str]:
    """Names of the weights at the ends of the output's graph."""
    found: set[int] = set()
    seen, ahead = set(), [output.grad_fn]
    while ahead:
        node = ahead.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        found.add(id(getattr(node, "variable", None)))
        ahead += [following for following, _ in node.next_functions]
    return (name for name, weight in model.named_parameters() if id(weight) in found)


def _looks_ahead(logits: torch.Tensor, embedded: list[torch.Tensor]) -> bool:
    """Do the logits of the first half depend on a token of the second?"""
    size = logits.shape[1]
    early = logits[:, : size // 2].float().square().sum()
    (gradient,) = torch.autograd.grad(early, embedded[0])
    of_token = gradient.float().reshape(size, -1).abs().amax(dim=-1)  # (1, tokens, hidden), or tokens first
    return bool(of_token[size // 2 :].max() > _LEAK * of_token[: size // 2].max())
