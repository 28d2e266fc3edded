"""The values of a script's expressions, without running them."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

OPERATORS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Pow: operator.pow,
}
CASTS = frozenset({"int", "float", "str", "bool", "list", "tuple", "Path", "dict"})
LARGEST = 2.0**53
DEEPEST = 40


@dataclass(frozen=True, slots=True)
class Known:
    """A value with its lines.

    argument: the option of which it is the default. name: it is a dotted name. file: if it is another's.
    """

    value: Any
    line: int
    end_line: int
    argument: str | None = None
    name: bool = False
    file: str = ""


@dataclass(frozen=True, slots=True)
class Argument:
    """An option that the script takes.

    It has the names under which it is given, and its default.
    """

    flags: tuple[str, ...]
    default: Known | None


@dataclass(frozen=True, slots=True)
class Call:
    """A call: its dotted name, and those of its arguments that are known."""

    name: str
    positional: tuple[Known | None, ...]
    keywords: dict[str, Known]
    line: int
    shares: dict[str, Known] = field(default_factory=dict)  # keywords that are a share of an unknown total
    first_name: str = ""
    names: dict[str, str] = field(default_factory=dict)  # keywords that are a variable, or a part of one
    rows: int = 0  # of a selection of the first ones, `select(range(N))`
    target: str = ""  # the variable to which what it returns is assigned


@dataclass(slots=True)
class Facts:
    """The facts of a file.

    Constants are in order of their lines; later ones shadow earlier ones.
    """

    file: str = ""
    constants: dict[str, list[Known]] = field(default_factory=dict)
    arguments: dict[str, Argument] = field(default_factory=dict)
    calls: list[Call] = field(default_factory=list)
    strings: set[str] = field(default_factory=set)
    modules: set[str] = field(default_factory=set)
    functions: set[str] = field(default_factory=set)
    entries: list[tuple[tuple[str, ...], Known]] = field(default_factory=list)
    mapped: dict[tuple[str, ...], Known] = field(default_factory=dict)  # the first entry of each path
    from_modules: dict[str, str] = field(default_factory=dict)  # imported name -> its module


class Expressions:
    """Values of expressions, from literals, constants and the defaults of options."""

    def __init__(self, facts: Facts, imported: Mapping[str, Facts]) -> None:
        self.facts, self.imported = facts, imported

    def known(self, node: ast.expr, depth: int = 0) -> Known | None:
        """The value of an expression of literals, constants and defaults, or None."""
        here = (node.lineno, node.end_lineno or node.lineno)
        if depth > DEEPEST:
            return None
        if isinstance(node, ast.Constant):
            usable = node.value is None or isinstance(node.value, str | int | float | bool)
            return Known(node.value, *here) if usable else None
        if isinstance(node, ast.List | ast.Tuple | ast.Set):
            items = [self.known(item, depth + 1) for item in node.elts]
            values = [item.value for item in items if item is not None]
            return Known(values, *here) if len(values) == len(items) else None
        if isinstance(node, ast.Name | ast.Attribute):
            return self._named(node)
        if isinstance(node, ast.Subscript):
            return self._subscript(node)
        if isinstance(node, ast.UnaryOp | ast.BinOp):
            return self._arithmetic(node, depth)
        if isinstance(node, ast.Call):
            return self._called(node, depth)
        return None

    def _named(self, node: ast.Name | ast.Attribute) -> Known | None:
        name = dotted(node)
        if not name:
            return None
        before = [known for known in self.facts.constants.get(name, ()) if known.line < node.lineno]
        if before or name in self.facts.constants:
            return max(before, key=lambda known: known.line) if before else self.facts.constants[name][0]
        owner, _, last = name.rpartition(".")
        if "." not in owner:
            module = self.imported.get(owner) or self.imported.get(self.facts.from_modules.get(name, ""))
            if module is not None and last in module.constants:
                return replace(module.constants[last][-1], file=module.file)
        if last in self.facts.arguments and (owner or isinstance(node, ast.Name)):
            default = self.facts.arguments[last].default
            return Known(default.value if default else None, node.lineno, node.lineno, argument=last)
        if isinstance(node, ast.Attribute):
            return Known(name, node.lineno, node.lineno, name=True)
        return None

    def _subscript(self, node: ast.Subscript) -> Known | None:
        path: list[str] = []
        inner: ast.expr = node
        while isinstance(inner, ast.Subscript):
            if not isinstance(inner.slice, ast.Constant) or not isinstance(inner.slice.value, str):
                return None
            path.insert(0, inner.slice.value)
            inner = inner.value
        whole = (dotted(inner), *path)
        return self.facts.mapped.get(whole)

    def _arithmetic(self, node: ast.UnaryOp | ast.BinOp, depth: int) -> Known | None:
        here = (node.lineno, node.end_lineno or node.lineno)
        if isinstance(node, ast.UnaryOp):
            known = self.known(node.operand, depth + 1)
            if known is None or not isinstance(known.value, int | float) or not isinstance(node.op, ast.USub):
                return None
            return Known(-known.value, *here)
        left, right = self.known(node.left, depth + 1), self.known(node.right, depth + 1)
        if left is None or right is None or type(node.op) not in OPERATORS or left.argument or right.argument:
            return None
        numbers = all(isinstance(one.value, int | float) and abs(one.value) < 1e6 for one in (left, right))
        if not numbers or (isinstance(node.op, ast.Pow) and abs(right.value) > 40):
            return None
        try:
            value = OPERATORS[type(node.op)](left.value, right.value)
        except (ArithmeticError, ValueError):
            return None
        return Known(value, *here) if isinstance(value, int | float) and abs(value) < LARGEST else None

    def _called(self, node: ast.Call, depth: int) -> Known | None:
        name = dotted(node.func)
        if name.rpartition(".")[2] in CASTS and len(node.args) == 1:
            return self.known(node.args[0], depth + 1)
        if name.endswith(("environ.get", "getenv")) and len(node.args) == 2:
            return self.known(node.args[1], depth + 1)
        return None


def whole(node: ast.AST) -> ast.AST:
    """The whole that a part is taken of: `data` of `data["train"]`."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return node


def dotted(node: ast.AST) -> str:
    """Return `a.b.c` of a chain of names, or an empty text.

    The result of a call counts by its function's name.
    """
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.insert(0, node.attr)
        node = node.value
    if isinstance(node, ast.Name):
        return ".".join((node.id, *parts))
    if isinstance(node, ast.Call) and parts:
        inner = dotted(node.func)
        return ".".join((inner, *parts)) if inner else ""
    return ""
