"""How fast the links between this node's GPUs are, kept in its folder.

One pair stands for all that relate as it does. The result is told with the node's facts, and measured again
when the hardware or the software has changed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Hashable, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

from trainer.agent.storage.folder import NodeFolder, read_json, write_json
from trainer.protocol import GpuFacts, ProtocolError, to_json
from trainer.protocol_parsing import parse_link_tests
from trainer.self_tests import LinkTest

MOST_PAIRS = 8
Pair = tuple[int, int]  # indices of GPUs


class LinkTests(NamedTuple):
    """The tests of a node, or why there are none."""

    tests: tuple[LinkTest, ...] = ()
    problem: str = ""


def pairs(gpus: Sequence[GpuFacts]) -> list[Pair]:
    """Return the first pair of each way in which two GPUs of one model relate.

    There are none where nobody says how they do.
    """
    found: dict[Hashable, Pair] = {}
    for one, other in combinations(gpus, 2):
        if one.model == other.model and (relation := _relation(one, other)):
            found.setdefault((one.model, relation), (one.index, other.index))
    return list(found.values())[:MOST_PAIRS]


def _relation(one: GpuFacts, other: GpuFacts) -> Hashable:
    if one.declared and other.declared:
        here, there = one.declared, other.declared
        linked = here.nvlink is not None and here.nvlink == there.nvlink
        return here.socket == there.socket, here.numa == there.numa, here.switch == there.switch, linked
    key = str(other.index)
    if key not in one.links and key not in one.pci and one.numa is None:
        return None
    return one.links.get(key), one.pci.get(key), one.numa == other.numa, one.socket == other.socket


def fingerprint(gpus: Sequence[GpuFacts], software: Mapping[str, str]) -> str:
    """Return a digest of all that the figures hang on."""
    hardware = [(gpu.model, gpu.uuid) for gpu in gpus]
    text = json.dumps([hardware, pairs(gpus), dict(software)], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def known(folder: NodeFolder, gpus: Sequence[GpuFacts], software: Mapping[str, str]) -> LinkTests:
    """Return the tests made on this hardware with this software.

    A file that cannot be read counts as none.
    """
    kept = read_json(folder.link_tests_file) or {}
    if kept.get("fingerprint") != fingerprint(gpus, software):
        return LinkTests()
    try:
        return LinkTests(parse_link_tests(kept["tests"], len(gpus)), str(kept["problem"]))
    except (ProtocolError, KeyError):
        return LinkTests()


def keep(folder: NodeFolder, gpus: Sequence[GpuFacts], software: Mapping[str, str], found: LinkTests) -> None:
    """Keep the tests in place of the last ones. Raises OSError."""
    tests = [to_json(test) for test in found.tests]
    entry = {"fingerprint": fingerprint(gpus, software), "tests": tests, "problem": found.problem}
    write_json(folder.link_tests_file, entry)
