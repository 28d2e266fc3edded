"""GPUs and nodes: which, how many, and how many in each."""

from __future__ import annotations

import re
from collections.abc import Iterator

from portal.intents.core.names.gpu_index import Named, gpu_names
from portal.intents.core.numbers import COUNT, number
from portal.intents.core.spans import Sentence
from portal.intents.core.types import Proposal, Setting

_MARK = "\x00"
_GPU = rf"(?:{_MARK}+|(?:{_MARK}+\s*)?(?:gpus?|graphics\s+cards?|cards?|accelerators?))"
_NODE = r"(?:(?:gpu|compute|cluster|physical)\s+)?(?:nodes?|machines?|servers?|hosts?|boxes|box)"
_N = rf"(?:{COUNT})"
_HEAD = r"(?<![\w.,/$€£=-])"
_TAIL = r"(?![\w])"
_FREE = (
    r"(?:of\s+(?:the|our|my|your|those|these)\s+)?(?:(?:x|\*)\s*|(?:free|available|nvidia|amd|idle|big"
    r"|spare|whole)\s+)?"
)
_PATTERNS = tuple(
    re.compile(_HEAD + pattern + _TAIL)
    for pattern in (
        rf"(?P<nodes>{_N})\s*[x*]\s*(?P<per>{_N})\s*(?:[x*]\s*)?{_GPU}",
        rf"(?P<nodes>{_N}|an?)\s+{_NODE}\s*[,(]?\s*(?:with|of|having|x|at|using|w/|each\s+with"
            rf"|and)\s*(?P<per>{_N})\s*{_FREE}(?:{_GPU})?(?:\s*(?:each|apiece|per\s+{_NODE}|\)))*",
        rf"(?P<nodes>{_N})\s+{_NODE}\s*[,(]?\s*(?P<per>{_N})\s*{_FREE}(?:{_GPU})\s*(?:each|apiece"
            rf"|per\s+{_NODE}|on\s+each)",
        rf"(?P<per>{_N})\s*{_FREE}{_GPU}\s*(?:per|on\s+each|on\s+every|in\s+each|in\s+every"
            rf"|each\s+on|/)\s*{_NODE}\s*,?\s*(?:(?:on|over|across|x|with|for|times|and)\s+)?"
            rf"(?P<nodes>{_N})\s+{_NODE}",
        rf"(?P<per>{_N})\s*{_FREE}{_GPU}\s*(?:each\s+)?on\s+each\s+of\s+(?:the\s+|our\s+)?"
            rf"(?P<nodes>{_N})\s+{_NODE}",
        rf"(?P<nodes>{_N})\s*{_FREE}{_MARK}+\s+{_NODE}",
        rf"(?P<total>{_N})\s*{_FREE}{_GPU}(?!\s+{_NODE})",
        rf"{_MARK}+\s*(?:[x*]\s*|\(|:(?=\d))(?P<total>{_N})\)?",
        rf"{_MARK}+\s*,?\s*(?P<total>{_N})\s+of\s+(?:them|those|these)",
        r"(?:num(?:ber)?[\s_]*(?:of[\s_]*)?|n[\s_]*)?(?:gpus?|gpu[\s_]*count)\s*(?:[=:]|is)\s*"
            rf"(?P<total>{_N})",
        rf"(?P<total>an?)\s+(?:single\s+)?(?:nvidia\s+|amd\s+)?{_MARK}+(?!\s+{_NODE})",
        rf"(?P<total>(?:a|one)\s+single|(?:only|just)\s+(?:a|one)|a\s+lone)\s+{_GPU}",
        rf"(?P<nodes>{_N})\s+{_NODE}",
        rf"(?:num(?:ber)?[\s_]*(?:of[\s_]*)?)nodes?\s*(?:[=:]|is)?\s*(?P<nodes>{_N})|nodes?\s*[=:]\s*"
            rf"(?P<nodes2>{_N})",
    )
)  # fmt: skip
_BOUND = re.compile(r"(?P<no>(?:\bno|\bnot|n't|\bnever)\s+(?:\w+\s+)?)?(?P<than>more\s+than|over|above"
    r"|below|under|(?:fewer|less)\s+than)\s*$")  # fmt: skip
# What a node has is no wish for it.
_OWNED = re.compile(
    rf"(?:each|every|our|the|a|per)\s+{_NODE}\s+(?:has|have|had|got|comes?\s+with|holds?)\s*$"
)
_UPPER = re.compile(r"more|over|above")
_CPU = re.compile(
    r"(?<!\w)(?:(?:on|use|using|with)\s+(?:the\s+|a\s+|only\s+)?cpus?(?:\s+only)?|cpu[\s-]only"
    r"|no\s+gpus?,?\s+(?:just|only)\s+(?:the\s+)?cpus?)(?![\w-])"
)


def read(text: Sentence, setting: Setting, taken: list[tuple[int, int]]) -> Iterator[Proposal]:
    """Proposals of GPU models and of numbers of GPUs and nodes."""
    low = text.blanked(taken)
    named = gpu_names(low, setting.catalogue, setting.nodes)
    for name in named:
        yield _model(name)
    for name in named:
        low = low[: name.start] + _MARK * (name.end - name.start) + low[name.end :]
    for found in _CPU.finditer(low):
        yield Proposal(field="gpu_model", start=found.start(), end=found.end(), value="cpu", weight=2)
    for pattern in _PATTERNS:
        for found in pattern.finditer(low):
            if not _is_open(low[: found.start()]):
                yield from _counts(found)


def _is_open(before: str) -> bool:
    """Does a number after these words determine nothing?"""
    if _OWNED.search(before):
        return True
    bound = _BOUND.search(before)
    return bound is not None and not (bound["no"] and _UPPER.match(bound["than"]))


def _model(name: Named) -> Proposal:
    if len(name.models) == 1:
        return Proposal(field="gpu_model", start=name.start, end=name.end, value=name.models[0], weight=4)
    return Proposal(field="gpu_model", start=name.start, end=name.end, choices=name.models, weight=4)


def _counts(found: re.Match[str]) -> Iterator[Proposal]:
    """Propose numbers of devices.

    Proposals stand on their numbers; the more of a phrase was understood, the more they weigh.
    """
    groups = found.groupdict()
    where = {name: found.span(name) for name, said in groups.items() if said is not None}
    values = {name: _value(found[name]) for name in where}
    if any(value is None for value in values.values()):
        return
    nodes_at = "nodes2" if "nodes2" in values else "nodes"
    nodes, per, total = values.get(nodes_at), values.get("per"), values.get("total")
    weight = 3 + 2 * len(values)
    if nodes is not None:
        start, end = where[nodes_at]
        yield Proposal(field="number_nodes", start=start, end=end, value=nodes, weight=weight)
    if per is not None and nodes is not None:
        start, end = where["per"]
        yield Proposal(field="number_gpus", start=start, end=end, value=nodes * per, weight=weight)
    elif total is not None:
        start, end = where["total"]
        yield Proposal(field="number_gpus", start=start, end=end, value=total, weight=weight)


def _value(said: str) -> int | None:
    if said.split()[0] in ("a", "an", "only", "just") or said.endswith("single"):
        return 1
    value = number(said, whole=True)
    return int(value) if value is not None and value == int(value) else None
