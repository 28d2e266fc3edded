"""A configuration as the small published tables state it."""

from __future__ import annotations

from knowledge.core.data.sources.table import Cells
from knowledge.core.domain.types import Config


def small_config(cells: Cells, length: int, batch: int) -> Config:
    """Return the configuration of a line.

    length: tokens of a sample. batch: samples of a GPU at a time.
    """
    tuning, gpus = cells.one_of("method", ("full", "lora", "qlora")), cells.count("number_gpus")
    return Config(
        model_name=cells.model("model_name"),
        tuning=tuning,
        gpu_model=cells.gpu("gpu_model"),
        number_gpus=gpus,
        tokens_per_sample=length,
        per_device_batch_size=batch,
        precision=cells.text("torch_dtype"),
        quantization="bnb-4bit" if tuning == "qlora" else "none",
        sharding="fsdp" if gpus > 1 else "none",
    )
