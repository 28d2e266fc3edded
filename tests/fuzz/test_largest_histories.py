"""Histories of the largest size that a page takes.

Memory grows with the file, whatever its shape.
"""

from __future__ import annotations

from contextlib import suppress

import pytest

from knowledge.catalogue.shipped_catalogue import shipped_catalogue
from knowledge.core.data.sources import registry
from knowledge.core.data.sources.table import BadTable
from scheduler.services.history import LARGEST, MOST_LINES
from tests.harness.hostile import peak_bytes

CATALOGUE = shipped_catalogue()

HEADER = "model_name,method,gpu_model,number_gpus,tokens_per_sample,per_device_batch_size,status,origin"
ROW = "{},lora,NVIDIA-A100-SXM4-80GB,1,512,4,ok,{}"


def rows(model: str, origin: str) -> str:
    """As many as are taken; `{}` in a cell stands for the row's number."""
    row = ROW.format(model, origin)
    return "\n".join([HEADER, *(row.replace("{}", str(number)) for number in range(MOST_LINES - 1))])


TABLES = {
    "short rows": lambda: rows("llama3.1-8b", ""),
    "long cells": lambda: rows("llama3.1-8b", "x" * 440),
    "models that nobody knows": lambda: rows("x" * 280 + "{}", "{}"),
    "characters of four bytes": lambda: rows("llama3.1-8b", "\U0001f600" * 110),
    "many columns": lambda: "\n".join([f"{HEADER},{','.join(map(str, range(900)))}", *["," * 907] * 20_000]),
    "one line": lambda: f"{HEADER}\n{',' * (LARGEST - 200)}",
    "one cell": lambda: f'{HEADER}\n"{"x" * (LARGEST - 200)}',
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", TABLES)
def test_the_largest_history_takes_bounded_memory(kind: str) -> None:
    text = TABLES[kind]()
    assert len(text.encode()) <= LARGEST

    def read() -> None:
        with suppress(BadTable):
            registry.parse(text, CATALOGUE)

    assert peak_bytes(read) < 8 * LARGEST
