"""`job.yaml`: a job as a file, with errors that name the line.

`version: 1`, then the fields of a job as the API takes them, with `data` (a path) in the place of
`training_file`, and `matrix` for a job for each combination of parameters. What a portal tells under
`jobs/ID/request/` is such a file, too. `!env` marks a value in which `${NAME}` stands for the environment's.
"""

from __future__ import annotations

import difflib
import itertools
import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ._errors import ApiError, ForetuneError

VERSION = 1
JOB_FIELDS = (
    *(
        "model",
        "training_file",
        "validation_file",
        "recipe",
        "goal",
        "params",
        "name",
        "deadline_at",
        "budget",
    ),
    *("begin_at", "after", "retries", "team", "priority", "preemptible", "max_run_s", "spot", "topology"),
    *("topology_level", "metadata"),
)
OWN_FIELDS = ("version", "data", "validation_data", "matrix", "limit")
MOST_JOBS = 1000  # of one array
_PATHS = {"data": "training_file", "validation_data": "validation_file"}
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")

TEMPLATE = """\
# A job of Foretune. `foretune run` shows what it will take, asks, and submits it.
version: 1
model: {model}
data: {data}              # JSON Lines; a path from this file, or `training_file:` with a file's id

# goal: balanced                # or fastest, cheapest, deadline (with deadline_at), budget (with budget)
# deadline_at: 2027-01-31T18:00:00+01:00
# budget: 20                    # in the portal's currency
# name: my-first-job
# team: research
# priority: normal              # or low, high, urgent
# validation_data: check.jsonl
# max_run_s: 7200

# What you leave out is recommended, and the job says for each value who chose it and why.
# params:
#   tuning: lora
#   learning_rate: 2e-4
#   epochs: 3

# One job for each combination, `limit` of them at a time:
# matrix:
#   learning_rate: [1e-4, 2e-4]
#   seed: [1, 2, 3]
# limit: 2

# metadata:
#   commit: !env ${{GIT_COMMIT}}  # of the environment; only values with !env are looked up
"""


class JobFileError(ForetuneError):
    """A line of a job's file cannot be understood; the message names it."""


@dataclass(frozen=True)
class JobFile:
    """What a job file says.

    fields: of the job, as the API takes them. files: paths on this machine, by field.

    matrix: parameters of each job of an array; empty for a single one. lines: where each key stands.
    """

    path: Path
    fields: dict[str, Any]
    files: dict[str, Path]
    matrix: tuple[dict[str, Any], ...]
    limit: int | None
    lines: dict[str, int]

    def located(self, refused: ApiError) -> str:
        """The portal's complaints with the lines of this file that they are about."""
        complaints = []
        for name, said in refused.fields.items():
            shown = next((own for own, field in _PATHS.items() if field == name and own in self.lines), name)
            line = self.lines.get(shown) or self.lines.get(shown.partition(".")[0])
            where = f"{self.path}:{line}" if line else f"{self.path}"
            complaints.append(f"{where}: {shown}: {_sentence(said)}")
        return "\n".join(complaints) or refused.message


def read(path: Path) -> JobFile:
    """Raises JobFileError and OSError."""
    return parse(path.read_bytes(), path)


def parse(content: bytes, path: Path) -> JobFile:
    """Raises JobFileError."""
    lines: dict[str, int] = {}
    values = _Reader(path, lines).read(content)
    if not isinstance(values, dict):
        raise JobFileError(f"{path}: a job's file has keys and values, such as `model: builtin/tiny-llama`.")

    def complain(key: str, text: str) -> JobFileError:
        return JobFileError(f"{path}:{lines.get(key, 1)}: {key}: {text}")

    for key in values:
        if key not in (*OWN_FIELDS, *JOB_FIELDS):
            raise complain(key, f"is not known{_nearest(key)}.")
    if values.pop("version", VERSION) != VERSION:
        raise complain("version", f"this client reads version {VERSION}.")
    files = {}
    for key, field in _PATHS.items():
        if (given := values.pop(key, None)) is None:
            continue
        if not isinstance(given, str) or not given:
            raise complain(key, "must be a path.")
        if field in values:
            raise complain(key, f"stands for {field}, which is there as well; leave one out.")
        files[field] = path.parent / Path(given).expanduser()
        if not files[field].is_file():
            raise complain(key, f"there is no file {files[field]}.")
    matrix = values.pop("matrix", None)
    limit = values.pop("limit", None)
    if matrix is None and limit is not None:
        raise complain("limit", "is how many jobs of a matrix run at a time, and there is no matrix.")
    return JobFile(path, values, files, _combinations(matrix, complain), limit, lines)


def _combinations(matrix: object, complain: Any) -> tuple[dict[str, Any], ...]:
    if matrix is None:
        return ()
    if not isinstance(matrix, dict) or not matrix:
        raise complain("matrix", "must have a list of values for each parameter.")
    for name, choices in matrix.items():
        if not isinstance(choices, list) or not choices:
            raise complain(f"matrix.{name}", "must be a list of values, e.g. [1, 2].")
    count = math.prod(len(choices) for choices in matrix.values())
    if not 2 <= count <= MOST_JOBS:
        raise complain("matrix", f"makes {count:,} jobs; an array has 2 to {MOST_JOBS:,}.")
    return tuple(dict(zip(matrix, values, strict=True)) for values in itertools.product(*matrix.values()))


class _Reader:
    """YAML as values, with the line of each key.

    Words mean what YAML 1.2 says: `no` is a word.
    """

    def __init__(self, path: Path, lines: dict[str, int]) -> None:
        self.path, self.lines = path, lines

    def read(self, content: bytes) -> Any:
        import yaml

        self.yaml = yaml
        try:
            node = yaml.compose(content.decode("utf-8-sig"), Loader=yaml.BaseLoader)
        except UnicodeDecodeError as wrong:
            raise JobFileError(f"{self.path}: is not UTF-8: {wrong.reason} at byte {wrong.start}.") from wrong
        except yaml.MarkedYAMLError as wrong:
            line = wrong.problem_mark.line + 1 if wrong.problem_mark else 1
            raise JobFileError(f"{self.path}:{line}: is no YAML: {wrong.problem}.") from wrong
        except (yaml.YAMLError, RecursionError) as wrong:
            raise JobFileError(f"{self.path}: is no YAML: {wrong}.") from wrong
        return self._value(node, "", set()) if node else {}

    def _value(self, node: Any, name: str, above: set[int]) -> Any:
        if id(node) in above:
            raise self._wrong(node, "stands within itself")
        above = above | {id(node)}
        if isinstance(node, self.yaml.MappingNode):
            return self._mapping(node, name, above)
        if isinstance(node, self.yaml.SequenceNode):
            return [self._value(one, f"{name}.{number}", above) for number, one in enumerate(node.value)]
        if node.tag == "!env":
            return self._from_environment(node)
        if node.tag.startswith("!"):
            raise self._wrong(node, f"{node.tag} is not known; only !env is")
        return scalar(node.value) if node.style is None else node.value

    def _mapping(self, node: Any, name: str, above: set[int]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in node.value:
            if not isinstance(key, self.yaml.ScalarNode):
                raise self._wrong(key, "a key must be a word")
            if key.value in found:
                raise self._wrong(key, f"{key.value} stands here a second time")
            whole = f"{name}.{key.value}" if name else key.value
            self.lines[whole] = key.start_mark.line + 1
            found[key.value] = self._value(value, whole, above)
        return found

    def _from_environment(self, node: Any) -> Any:
        def looked_up(match: re.Match[str]) -> str:
            value = os.environ.get(match[1])
            if value is None:
                raise self._wrong(node, f"the environment has no {match[1]}")
            return value

        text = _VARIABLE.sub(looked_up, node.value)
        return scalar(text) if node.style is None else text

    def _wrong(self, node: Any, text: str) -> JobFileError:
        return JobFileError(f"{self.path}:{node.start_mark.line + 1}: {text}.")


def scalar(text: str) -> Any:
    """A word as a value: null, true, false, a number, else itself."""
    simple: Mapping[str, Any] = {"null": None, "~": None, "": None, "true": True, "false": False}
    if text in simple:
        return simple[text]
    if re.fullmatch(r"[-+]?\d{1,18}", text, re.ASCII):
        return int(text)
    if re.fullmatch(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", text, re.ASCII):
        return float(text)
    return text


def _nearest(key: str) -> str:
    near = difflib.get_close_matches(key, (*OWN_FIELDS, *JOB_FIELDS), n=1)
    if near:
        return f"; did you mean {near[0]}?"
    return "; a parameter of the training stands below `params:`"


def _sentence(said: object) -> str:
    return "; ".join(str(one) for one in said) if isinstance(said, list) else str(said)
