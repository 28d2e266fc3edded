"""The loss of a micro-batch, without the logits of all its positions.

A vocabulary of 128,000 makes logits the largest tensor of a training: 12 bytes for each token and word. Only
trained positions need any, and a chunk of them at a time is enough, as in Liger kernels (Hsu et al. 2024).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch.nn.functional import cross_entropy
from torch.utils.checkpoint import checkpoint

from trainer.logits import positions_at_once
from trainer.train.data import IGNORED

OfChunk = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


class TokenLoss(torch.nn.Module):
    """Cross entropy summed over a micro-batch's trained tokens.

    It serves any causal language model. The part between decoder and logits (head, soft caps,
    scales) is the model's own forward pass, run on hidden states that are handed to it in the
    decoder's place.
    """

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model
        causal = model.get_base_model() if hasattr(model, "get_base_model") else model
        # In a tuple: as submodules they would stand in the module's state twice.
        self._parts = (causal, _decoder(causal))

    def forward(self, ids: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Two tensors of (rows, tokens) -> the sum, a float32 scalar."""
        expected = labels[:, 1:]  # each position predicts the next token
        trained = (expected != IGNORED).flatten().nonzero().flatten()
        if not len(trained):  # a loss of zero, with gradients for every process to exchange
            trained = trained.new_zeros(1)
        decoded, logits = self._decode(ids)
        expected = expected.flatten()[trained]
        if decoded is None:
            return _cross_entropy(logits[:, :-1].flatten(0, 1)[trained], expected)
        hidden = decoded.last_hidden_state[:, :-1].flatten(0, 1)[trained]
        size = positions_at_once(logits.shape[-1])
        of_chunk = partial(self._of_chunk, type(decoded))
        if len(trained) > size:
            of_chunk = partial(_later if self._head_learns() else _now, of_chunk)
        chunks = zip(hidden.split(size), expected.split(size), strict=True)
        return torch.stack([of_chunk(*chunk) for chunk in chunks]).sum()

    def _head_learns(self) -> bool:
        causal, decoder = self._parts
        after = (module for module in causal.children() if module is not decoder)
        return any(weight.requires_grad for module in after for weight in module.parameters())

    def _decode(self, ids: torch.Tensor) -> tuple[Any, torch.Tensor]:
        """The decoder's output for all positions, and logits of the first one alone.

        Without a mask of padding attention is causal alone, which the fastest kernels compute; with one they
        would compute all scores, half of them for nothing. The whole model runs, since a wrapper such as FSDP
        must see its forward pass. Where it does not call its decoder as a module: None, and logits of all
        positions.
        """
        _, decoder = self._parts
        seen = []
        decode = decoder.forward

        def first_alone(*args: Any, **kwargs: Any) -> Any:
            output = decode(*args, **kwargs)
            seen.append(output)
            return type(output)(last_hidden_state=output.last_hidden_state[:, :1].contiguous())

        with _forward(decoder, first_alone):
            logits = self.model(input_ids=ids, use_cache=False).logits
        return (seen[0] if seen else None), logits

    def _of_chunk(self, decoded: type, hidden: torch.Tensor, expected: torch.Tensor) -> torch.Tensor:
        """Return the summed loss of a chunk of positions.

        decoded: the class of the decoder's output.
        hidden: (positions, width); expected: (positions,).
        """
        causal, decoder = self._parts
        given = decoded(last_hidden_state=hidden[None])
        with _forward(decoder, lambda *_, **__: given):
            logits = causal.forward(input_ids=expected[None].clamp(min=0), use_cache=False).logits
        return _cross_entropy(logits[0], expected)


def _decoder(causal: Any) -> Any:
    """Return the module before the head.

    Llama 4 names one that it does not have: then it is the largest.
    """
    named = causal.base_model
    if named is not causal:
        return named
    return max(causal.children(), key=lambda child: sum(weight.numel() for weight in child.parameters()))


def _cross_entropy(logits: torch.Tensor, expected: torch.Tensor) -> torch.Tensor:
    return cross_entropy(logits.float(), expected, ignore_index=IGNORED, reduction="sum")


def _later(of_chunk: OfChunk, hidden: torch.Tensor, expected: torch.Tensor) -> torch.Tensor:
    """Return a loss whose logits are computed once more in the backward pass.

    The head's own gradient must reach the process or wrapper that sums it.
    """
    loss: torch.Tensor = checkpoint(of_chunk, hidden, expected, use_reentrant=False, preserve_rng_state=False)
    return loss


def _now(of_chunk: OfChunk, hidden: torch.Tensor, expected: torch.Tensor) -> torch.Tensor:
    """Return a loss that comes with the gradient of a frozen head's input.

    No logits wait for the backward pass.
    """
    if not torch.is_grad_enabled():
        return of_chunk(hidden, expected)
    loss: torch.Tensor = _WithGradient.apply(of_chunk, hidden, expected)
    return loss


class _WithGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, of_chunk: OfChunk, hidden: torch.Tensor, expected: torch.Tensor) -> torch.Tensor:
        with torch.enable_grad():
            start = hidden.detach().requires_grad_()
            loss = of_chunk(start, expected)
            ctx.save_for_backward(*torch.autograd.grad(loss, start))
        return loss.detach()

    @staticmethod
    def backward(ctx: Any, *outer: torch.Tensor) -> tuple[None, torch.Tensor, None]:
        (gradient,) = ctx.saved_tensors
        return None, outer[0].to(gradient.dtype) * gradient, None


@contextmanager
def _forward(module: Any, forward: Callable[..., Any]) -> Iterator[None]:
    """Let a module do something else for a while."""
    before = module.__dict__.get("forward")  # as set by who wraps models one by one
    module.forward = forward
    try:
        yield
    finally:
        if before is None:
            del module.forward
        else:
            module.forward = before
