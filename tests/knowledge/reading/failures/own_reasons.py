"""Every reason that our own trainer and agent can give for an end, read from their code.

A reason is what is raised as one of the errors whose message ends a training or a claim, and what is passed
on as `reason`. Values in it are unknown; a word stands for each.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from itertools import product
from pathlib import Path
from typing import NamedTuple

TRAINER = Path(__file__).parents[4] / "trainer"
# Their messages become the reason of an attempt's end; those of others are shown elsewhere.
ENDING = {
    "TrainError", "NodeFault", "CheckpointFault", "PeersMissing",
    "Declined", "InputLost", "CheckpointGone", "PeerAway",
}  # fmt: skip
STAND_IN = "7"  # a model, a file and a number alike
MOST_FORMS = 64  # of one message


class OwnReason(NamedTuple):
    """Where it is given, and its text with a word for each unknown value."""

    place: str
    text: str


def own_reasons() -> Iterator[OwnReason]:
    """All reasons, each once."""
    seen: set[str] = set()
    for path in sorted(TRAINER.rglob("*.py")):
        place = path.relative_to(TRAINER).as_posix()
        for node, function in _reasons(ast.parse(path.read_text(encoding="utf-8"))):
            for text in _texts(node, function, path, 0):
                if re.search(r"[a-z]{2}", text) and text not in seen:
                    seen.add(text)
                    yield OwnReason(f"{place}:{node.lineno}", text)


def _reasons(tree: ast.Module) -> Iterator[tuple[ast.expr, ast.AST]]:
    """Expressions that are a reason, with the function around them."""
    for function, node in _with_function(tree):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and _name(node.exc.func) in ENDING:
            yield node.exc.args[0], function
        elif isinstance(node, ast.Call):
            if _name(node.func) == "_refuse":
                yield node.args[-1], function
            for keyword in node.keywords:
                if keyword.arg == "reason":
                    yield keyword.value, function
        elif isinstance(node, ast.Return) and isinstance(node.value, ast.Tuple) and _is_end(node.value):
            yield node.value.elts[1], function


def _is_end(node: ast.Tuple) -> bool:
    """`Outcome.X, "why"`, as the training process returns it."""
    return len(node.elts) == 2 and "Outcome" in {
        one.id for one in ast.walk(node.elts[0]) if isinstance(one, ast.Name)
    }


def _with_function(tree: ast.AST, around: ast.AST | None = None) -> Iterator[tuple[ast.AST, ast.AST]]:
    for child in ast.iter_child_nodes(tree):
        inner = child if isinstance(child, ast.FunctionDef) else around
        yield inner or tree, child
        yield from _with_function(child, inner)


def _texts(node: ast.expr, function: ast.AST, path: Path, depth: int) -> list[str]:
    """The texts that an expression may be; a stand-in where it is a value from outside."""
    if depth > 6:
        return [STAND_IN]
    inner = depth + 1
    if isinstance(node, ast.Constant):
        return [node.value] if isinstance(node.value, str) else [STAND_IN]
    if isinstance(node, ast.JoinedStr):
        parts = [
            [str(part.value)] if isinstance(part, ast.Constant) else _of_value(part, function, path, inner)
            for part in node.values
        ]
        return ["".join(chosen) for _, chosen in zip(range(MOST_FORMS), product(*parts), strict=False)]
    if isinstance(node, ast.IfExp):
        return [*_texts(node.body, function, path, inner), *_texts(node.orelse, function, path, inner)]
    if isinstance(node, ast.BoolOp):
        return [text for one in node.values for text in _texts(one, function, path, inner)]
    if isinstance(node, ast.Subscript):
        return _texts(node.value, function, path, inner)
    if isinstance(node, ast.Name):
        return _of_name(node.id, function, path, inner)
    if isinstance(node, ast.Call):
        return _of_call(node, function, path, inner)
    return [STAND_IN]


def _of_value(part: ast.expr, function: ast.AST, path: Path, depth: int) -> list[str]:
    """A value within a text: constants as they are, all else by the stand-in."""
    value = part.value if isinstance(part, ast.FormattedValue) else part
    if isinstance(value, ast.Name) and (value.id.isupper() or value.id in dict(_looped(function, path))):
        return _texts(value, function, path, depth)
    return [STAND_IN]


def _looped(function: ast.AST, path: Path) -> Iterator[tuple[str, ast.expr]]:
    """Variables of a loop over a table that the module states, with their values."""
    for loop in ast.walk(function):
        if isinstance(loop, ast.For) and isinstance(loop.target, ast.Tuple):
            named = {one.id for one in ast.walk(loop.iter) if isinstance(one, ast.Name)}
            for table, rows in _assigned(_module(path)):
                for row in rows.elts if table in named and isinstance(rows, ast.Tuple) else ():
                    if isinstance(row, ast.Tuple):
                        pairs = zip(loop.target.elts, row.elts, strict=True)
                        yield from ((name.id, value) for name, value in pairs if isinstance(name, ast.Name))


def _of_name(name: str, function: ast.AST, path: Path, depth: int) -> list[str]:
    """What is assigned to the name in its function, else in its module or in any other one."""
    for scope in (
        function,
        _module(path),
        *((m for p, m in _modules() if p != path) if name.isupper() else ()),
    ):
        assigned = [*_assigned(scope), *(_looped(function, path) if scope is function else ())]
        values = [value for target, value in assigned if target == name]
        if values:
            return [text for value in values for text in _texts(value, scope, path, depth)]
    return [STAND_IN]


def _of_call(node: ast.Call, function: ast.AST, path: Path, depth: int) -> list[str]:
    name = _name(node.func)
    if name == "format" and isinstance(node.func, ast.Attribute):
        names = {one.arg: one.value for one in node.keywords if one.arg}
        values = {key: _texts(value, function, path, depth)[0] for key, value in names.items()}
        return [text.format(**values) for text in _texts(node.func.value, function, path, depth)]
    if name in {"removesuffix", "removeprefix", "clean_text"}:
        whole = node.func.value if isinstance(node.func, ast.Attribute) else node.args[0]
        return _texts(whole, function, path, depth)
    found: list[str] = []
    for home, module in _modules():
        for one in ast.walk(module):
            if isinstance(one, ast.FunctionDef) and one.name == name and name != "str":
                for result in ast.walk(one):
                    if isinstance(result, ast.Return) and result.value is not None:
                        found += [text for text in _texts(result.value, one, home, depth) if text != STAND_IN]
    return found or [STAND_IN]


def _assigned(scope: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    for node in ast.walk(scope):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    yield target.id, node.value
        elif isinstance(node, ast.NamedExpr):
            yield node.target.id, node.value


def _name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


@cache
def _modules() -> list[tuple[Path, ast.Module]]:
    return [(path, ast.parse(path.read_text(encoding="utf-8"))) for path in sorted(TRAINER.rglob("*.py"))]


def _module(path: Path) -> ast.Module:
    return next(module for one, module in _modules() if one == path)
