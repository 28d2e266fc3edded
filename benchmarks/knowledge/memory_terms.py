"""The terms of memory beside what autograd and PyTorch's objects really hold.

    .venv-train/bin/python -m benchmarks.knowledge.memory_terms [--only TEXT] [--json OUT]

Tiny models of many architectures with random weights, on the CPU, so that it needs no GPU. Of each, with
all weights trained, LoRA on all linear layers or on attention's, in three precisions, with fused and with
eager attention, and with 4-bit layers that keep their input: the bytes that a layer keeps for the
backward pass of one sample, from hooks on saved tensors. Bytes that do not grow with the samples (copies
of weights) and bytes outside of layers cancel out: it is the difference of two depths and of two numbers
of samples. The same with checkpointing. Weights, gradients and optimiser states are the bytes of the
objects after one step. Errors are of the counted bytes in % of the held ones; those above 5 % are marked.
"""

from __future__ import annotations

import argparse
import json
import warnings
from pathlib import Path

from transformers.utils import logging

from benchmarks.trainer.memory_models import (
    ARCHITECTURES,
    CASES,
    TOKENS,
    Case,
    configuration,
    kept_by_layer,
    objects,
)
from knowledge.catalogue.shipped_catalogue import shipped_catalogue
from knowledge.core.analytic import activations, cost_model
from knowledge.core.analytic.config_table import columns
from knowledge.core.domain.catalogue import Catalogue
from knowledge.core.domain.hf_config import model_from_config

BOUND = 0.05
Errors = dict[str, float]


def catalogue_of(architecture: str) -> Catalogue:
    """The catalogue with the tiny model, read from its config.json as a user's would be."""
    name = f"tiny/{architecture}"
    text = configuration(architecture, 2).to_json_string(use_diff=False)
    return shipped_catalogue().with_added({name: model_from_config(text, name)})


def errors(architecture: str, case: Case) -> Errors:
    """Error of each term that the case has, as a share of what is held."""
    c = columns([case.config(f"tiny/{architecture}")], catalogue_of(architecture))
    found = {
        "layer": float(activations.of_layer(c)[0]) * TOKENS / kept_by_layer(architecture, case, False) - 1
    }
    if not case.eager and not case.keeping:  # what follows depends on neither
        boundary = float(activations.of_boundary(c)[0]) * TOKENS
        found["checkpointed layer"] = boundary / kept_by_layer(architecture, case, True) - 1
        stated = cost_model.memory(c)
        for name, held in objects(architecture, case).items():
            found[name] = float(getattr(stated, name)[0]) / held - 1
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--only", default="", help="architectures and cases whose name contains this")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    warnings.filterwarnings("ignore")
    logging.set_verbosity_error()
    found: dict[str, Errors] = {}
    for architecture in ARCHITECTURES:
        for case in CASES:
            name = f"{architecture}, {case.name}, {'eager' if case.eager else 'fused'}"
            if args.only in name:
                try:
                    found[name] = by_case = errors(architecture, case)
                except ValueError as wrong:  # an attention that the architecture lacks
                    print(f"{name}: left out: {str(wrong)[:70]}", flush=True)
                    continue
                print(f"{name}: " + ", ".join(_cell(*error) for error in by_case.items()), flush=True)
    terms = [abs(error) for by_case in found.values() for error in by_case.values()]
    within = sum(error <= BOUND for error in terms)
    print(f"{within} of {len(terms)} terms within {BOUND:.0%}, {len(found)} cases")
    if args.json:
        args.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def _cell(name: str, error: float) -> str:
    return f"{name} {error:+.1%}{' !' if abs(error) > BOUND else ''}"


if __name__ == "__main__":
    main()
