"""How far off the facts of the model nearest in size are: `python -m benchmarks.knowledge.borrowed_facts`.

Each model of the catalogue whose name states its size is predicted by physics twice on an H100: with its own
facts, and with those that it would borrow if no model of its architecture were known. Printed are quantiles
of the differences in ln; `knowledge/core/recommend/borrowed_facts.py` takes the four fifths.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import numpy as np

from knowledge.catalogue.shipped_catalogue import shipped_catalogue
from knowledge.core.analytic import cost_model
from knowledge.core.analytic.config_table import columns
from knowledge.core.domain.catalogue import Catalogue
from knowledge.core.domain.catalogue.fallback import model_like, parameters_of
from knowledge.core.domain.config_space import OUR_TRAINER
from knowledge.core.domain.types import Config
from knowledge.core.predict.base import PriorPredictor

QUANTILES = (0.5, 0.8, 0.9)


def differences(catalogue: Catalogue) -> Iterator[tuple[float, float]]:
    """ln of the borrowed over the own peak, and of the rate, for each model, tuning and length."""
    for model in catalogue.shipped_models:
        if model.model_name.startswith("builtin/") or parameters_of(model.model_name) is None:
            continue
        others = {
            name: one for name, one in catalogue.models.items() if one.architecture != model.architecture
        }
        lender = model_like(model.model_name, replace(catalogue, models=others))
        for tuning, tokens in product(("lora", "qlora", "full"), (512, 4096)):
            configs = [
                Config(
                    model_name=name, tuning=tuning, gpu_model="H100-SXM5-80GB", number_gpus=1,
                    tokens_per_sample=tokens, per_device_batch_size=1, precision="bfloat16",
                    gradient_checkpointing=True, **OUR_TRAINER,
                )
                for name in (model.model_name, lender.model_name)
            ]  # fmt: skip
            table = columns(configs, catalogue)
            own_peak, borrowed_peak = cost_model.memory(table).total
            own_rate, borrowed_rate = PriorPredictor(catalogue=catalogue).physics(table)
            yield math.log(borrowed_peak / own_peak), math.log(borrowed_rate / own_rate)


def main() -> None:
    found = np.abs(np.array(list(differences(shipped_catalogue()))))
    print(f"{len(found)} comparisons")
    for quantile, (peak, rate) in zip(QUANTILES, np.quantile(found, QUANTILES, axis=0), strict=True):
        print(f"{quantile:4.0%}  ln peak {peak:.2f}  ln rate {rate:.2f}")


if __name__ == "__main__":
    main()
