"""Input that is almost right.

Good examples with some parts replaced, left out, doubled or moved.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

NESTED: Any = []
for _ in range(60):
    NESTED = [NESTED]
ODD_TEXTS = (
    *(
        "",
        " ",
        "\x00",
        "a\x00b",
        "\ud800",
        "\u202e",
        "\ufeff",
        "x" * 5000,
        "=1+1",
        "'",
        '"',
        "\r",
        "\n",
        ",",
        ";",
    ),
    *(
        "NaN",
        "inf",
        "-1",
        "1e999",
        "1" * 400,
        "1_0",
        "0x10",
        "٣",
        "1,5",
        "true",
        "None",
        "../../x",
        "/etc/passwd",
    ),
    *("<b>", "%00", "2026-02-30", "[]", "{}", "random/" * 40, "builtin/", "a/b"),
)
ODD_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2**31, 2**63, -(2**63) - 1, 10**400, 0.5, -0.0, 1e308, 5e-324, 3.0),
    *(float("nan"), float("inf"), [], {}, [None], [[]], {"": 0}, {"a": {"a": {}}}, NESTED, "a" * 70),
    *ODD_TEXTS,
)
odd_values = st.sampled_from(ODD_VALUES) | st.integers() | st.floats() | st.text(max_size=20)
odd_texts = st.sampled_from(ODD_TEXTS) | st.text(max_size=30)


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Every container of a value with every key of it."""
    inside = list(value.items()) if isinstance(value, dict) else list(enumerate(value))
    here = [(value, key) for key, _ in inside]
    return here + [place for _, inner in inside if isinstance(inner, dict | list) for place in _places(inner)]


@st.composite
def mutated(draw: st.DrawFn, examples: Sequence[Any]) -> Any:
    """One of the examples with up to four changes; containers only."""
    value = copy.deepcopy(draw(st.sampled_from(examples)))
    for _ in range(draw(st.integers(0, 4))):
        places = _places(value)
        if not places:
            break
        container, key = places[draw(st.integers(0, len(places) - 1))]
        match draw(st.sampled_from(["replace", "remove", "add", "repeat", "move"])):
            case "replace":
                container[key] = copy.deepcopy(draw(odd_values))
            case "remove":
                del container[key]
            case "add" if isinstance(container, dict):
                container[draw(odd_texts)] = copy.deepcopy(draw(odd_values))
            case "repeat" if isinstance(container, list):
                container.extend(copy.deepcopy([container[key]] * draw(st.integers(1, 50))))
            case _:
                other, place = places[draw(st.integers(0, len(places) - 1))]
                container[key] = copy.deepcopy(other[place])
    return value


@st.composite
def mutated_json(draw: st.DrawFn, examples: Sequence[Any]) -> bytes:
    """As text, now and then with some bytes of it changed as well."""
    value = draw(mutated(examples))
    raw = json.dumps(value, ensure_ascii=draw(st.booleans())).encode("utf-8", "surrogatepass")
    return draw(mutated_bytes(raw)) if draw(st.integers(0, 3)) == 0 else raw


@st.composite
def mutated_bytes(draw: st.DrawFn, raw: bytes) -> bytes:
    """Some bytes of it replaced, removed or put in."""
    content = bytearray(raw)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(content)))
        content[at : at + draw(st.integers(0, 8))] = draw(st.binary(max_size=8))
    return bytes(content)


@st.composite
def mutated_table(draw: st.DrawFn, header: Sequence[str], row: Sequence[str]) -> str:
    """A CSV text of a few rows with odd cells, now and then with odd columns."""
    names = list(header)
    if draw(st.integers(0, 3)) == 0:
        names[draw(st.integers(0, len(names) - 1))] = draw(odd_texts | st.sampled_from(names))
    lines = [names]
    for _ in range(draw(st.integers(0, 3))):
        cells = list(row)
        for _ in range(draw(st.integers(0, 3))):
            cells[draw(st.integers(0, len(cells) - 1))] = draw(odd_texts)
        lines.append(cells if draw(st.integers(0, 9)) else cells[:-1])
    between = draw(st.sampled_from([",", ",", ",", ";", "\t"]))
    return draw(st.sampled_from(["\n", "\r\n", "\r"])).join(between.join(line) for line in lines)
