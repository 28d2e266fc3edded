"""Text passed once through a base model, before it is trained.

It shows which parts text reaches, where an adapter can learn, and whether a token sees later ones. All follow
from the graph of the logits alone, so no architecture needs to be known by name. Towers for images and sound,
and layers that attend to them, stay as they are: a part that no gradient reaches can learn nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from trainer.architectures import positions
from trainer.train.errors import TrainError, is_out_of_memory, node_fault

TEXT = "Seven ships sailed east at dawn, and none of them came back before the winter."
MOST_TOKENS = 512  # blocks that begin later in a row, such as compressed keys from 128 tokens on, are met
_FEW_TOKENS = 16
_LEAK = 1e-4  # of the largest gradient; exactly 0 where tokens cannot see later ones, 3e-3 and more in BERT
_AS_LINEAR = 0.01  # of the largest output; below it is rounding


@dataclass(frozen=True, slots=True)
class Reach:
    """Parts of a model by name, as text passed through it.

    called: modules that ran.
    modules: those of them whose output the logits depend on.
    weights: those that the logits depend on.
    linear: linear layers that ran and gave input times weight, or a quantised form of it.
    """

    called: frozenset[str]
    modules: frozenset[str]
    weights: frozenset[str]
    linear: frozenset[str]
    looks_ahead: bool

    def has(self, layer: str) -> bool:
        """Does text reach this layer, called or by its weight alone?"""
        return layer in self.called or f"{layer}.weight" in self.weights


def probe(model: Any, tokenizer: Any, name: str, longest: int = MOST_TOKENS) -> Reach:
    """Find out what text reaches in a model.

    To be called before adapters and shards. No weight gets a gradient. The passes are in training
    mode: some architectures take another path then, and some refuse text alone.
    longest: the most tokens of a row. Raises TrainError.
    """
    places = positions(model.config.get_text_config().to_dict()) or MOST_TOKENS
    ids = _ids(tokenizer, min(longest, places, MOST_TOKENS))
    model.train()
    try:
        looks_ahead = _looks_ahead(model, ids[:_FEW_TOKENS])
        with _unsaved(), _watched(model) as seen:
            output = _logits(model, ids)
        nodes, weights = _graph(model, output)
        return Reach(
            called=frozenset(seen.nodes),
            modules=frozenset(name for name, ends in seen.nodes.items() if not nodes.isdisjoint(ends)),
            weights=frozenset(weights),
            linear=frozenset(seen.linear),
            looks_ahead=looks_ahead,
        )
    except Exception as wrong:  # a model is a program of its author: anything may go wrong
        if is_out_of_memory(wrong) or node_fault(wrong):
            raise
        raise TrainError(f"The model {name} does not read plain text: {str(wrong)[:300]}") from wrong


def _ids(tokenizer: Any, count: int) -> list[int]:
    """So many tokens of text, over and over again."""
    ids: list[int] = tokenizer(TEXT, add_special_tokens=False)["input_ids"]
    ids = ids if len(ids) > 1 else [*range(_FEW_TOKENS)]
    return (ids * (count // len(ids) + 1))[:count]


def _logits(model: Any, ids: list[int]) -> torch.Tensor:
    given = torch.tensor([ids], device=model.get_input_embeddings().weight.device)
    with torch.enable_grad():
        logits: torch.Tensor = model(
            input_ids=given, attention_mask=torch.ones_like(given), use_cache=False
        ).logits
    return logits


def _unsaved() -> Any:
    """Keep the graph without the tensors that only a backward pass needs.

    Of a long text they would take more memory than training with gradient checkpointing.
    """
    return torch.autograd.graph.saved_tensors_hooks(lambda _tensor: None, lambda _nothing: None)


@dataclass(frozen=True, slots=True)
class _Seen:
    """What ran: nodes that modules' outputs came from, and linear layers."""

    nodes: Mapping[str, set[Any]]
    linear: set[str]


@contextmanager
def _watched(model: Any) -> Iterator[_Seen]:
    """Yield what ran; it is filled in meanwhile."""
    seen = _Seen(defaultdict(set), set())

    def note(name: str, module: Any, args: Any, output: Any) -> None:
        ends = seen.nodes[name]
        if not isinstance(output, torch.Tensor):
            return
        ends.add(output.grad_fn)
        if isinstance(module, torch.nn.Linear) and _is_linear(module, args, output):
            seen.linear.add(name)

    def embed(_module: Any, _args: Any, output: torch.Tensor) -> torch.Tensor:
        return output if output.requires_grad else output.requires_grad_()

    with ExitStack() as hooks:
        hooks.enter_context(model.get_input_embeddings().register_forward_hook(embed))
        for name, module in model.named_modules():
            hooks.enter_context(
                module.register_forward_hook(
                    lambda module, args, output, name=name: note(name, module, args, output)
                )
            )
        yield seen


def _is_linear(module: Any, args: tuple[Any, ...], output: torch.Tensor) -> bool:
    """Tell whether an adapter beside this layer adds up with it.

    Some layers are linear in name alone: they take their input in groups, or weigh it in another way.
    """
    if type(module).forward is torch.nn.Linear.forward:
        return True
    if not args:
        return False
    given = args[0]
    if output.shape != (*given.shape[:-1], module.out_features) or given.shape[-1] != module.in_features:
        return False
    if module.weight.dtype != given.dtype:  # quantised
        return True
    with torch.no_grad():
        difference = (output - torch.nn.functional.linear(given, module.weight, module.bias)).abs().max()
        return bool(difference <= _AS_LINEAR * output.abs().max())


def _graph(model: Any, output: torch.Tensor) -> tuple[set[Any], Iterator[str]]:
    """Return the nodes of the output's graph and the weights at its ends."""
    leaves: set[int] = set()
    seen, ahead = set(), [output.grad_fn]
    while ahead:
        node = ahead.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        leaves.add(id(getattr(node, "variable", None)))
        ahead += [following for following, _ in node.next_functions]
    return seen, (name for name, weight in model.named_parameters() if id(weight) in leaves)


def _looks_ahead(model: Any, ids: list[int]) -> bool:
    """Do the logits of the first half depend on a token of the second?"""
    embedded: list[torch.Tensor] = []

    def embed(_module: Any, _args: Any, output: torch.Tensor) -> torch.Tensor:
        embedded.append(output if output.requires_grad else output.requires_grad_())
        return output

    with model.get_input_embeddings().register_forward_hook(embed):
        logits = _logits(model, ids)
    size = logits.shape[1]
    early = logits[:, : size // 2].float().square().sum()
    (gradient,) = torch.autograd.grad(early, embedded[0])
    of_token = gradient.float().reshape(size, -1).abs().amax(dim=-1)  # (1, tokens, hidden), or tokens first
    return bool(of_token[size // 2 :].max() > _LEAK * of_token[: size // 2].max())
