"""Files of predictors.

They are written whole or not at all, and read only where they are as they were written.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from knowledge.core.model.fitted_model import FittedModel
from knowledge.core.predict.store import BadPredictor, dumps, loads


def save(knowledge: Mapping[str, FittedModel], path: Path) -> str:
    """Write the knowledge of each kind.

    Returns the file's SHA-256 as hexadecimal digits.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_suffix(".part")
    try:
        aside.write_bytes(dumps(knowledge))
        aside.replace(path)
    except OSError:
        aside.unlink(missing_ok=True)  # half a file on a full disk would take what room is left
        raise
    return digest(path)


def load(path: Path, sha256: str, folder: Path) -> dict[str, FittedModel]:
    """Read what `save` wrote.

    Raises BadPredictor unless the file lies in `folder` and has that digest.
    """
    if folder.resolve() not in path.resolve().parents:
        raise BadPredictor(f"{path.name} does not lie in the predictors' folder; train a new predictor")
    if not path.is_file():
        raise BadPredictor(f"{path.name} is missing; train a new predictor")
    if digest(path) != sha256:
        raise BadPredictor(f"{path.name} is not the file that was written; train a new predictor")
    return loads(path.read_bytes(), path.name)


def digest(path: Path) -> str:
    """SHA-256 of a file, hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
