"""Whole steps of transformers' Trainer with peft, played without a GPU, beside the peaks that are predicted.

    .venv-train/bin/python -m benchmarks.trainer.hf_steps [--only TEXT] [--layers N]

Models of real sizes, LoRA and QLoRA as transformers 5.23 and peft run them on one small GPU: weights frozen
in 16 bits, adapters in float32, autocast, three steps with AdamW. Nothing is computed (`fake_gpu.py`), so
that steps of the largest take half a minute of one core and no memory. Every storage's life is played through
the rules of CUDA's allocator. Of each: what it reserves, which a GPU shows besides its context, and errors of
what is predicted of a T4: weights, adapters with their states, bytes allocated at the peak, and reserved
ones, to which cached blocks count.
"""

from __future__ import annotations

import argparse
import gc
import tempfile
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch
import transformers
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments, masking_utils
from transformers.utils import logging

from benchmarks.trainer import four_bits
from benchmarks.trainer.caching_allocator import reserved
from benchmarks.trainer.fake_gpu import Attention, Recorder, fake_gpu
from benchmarks.trainer.hf_models import SHAPES
from knowledge.catalogue.shipped_catalogue import shipped_catalogue
from knowledge.core.analytic import cost_model
from knowledge.core.analytic.config_table import ConfigTable, columns
from knowledge.core.domain.adapted_layers import ALL_LINEAR, ATTENTION, QUERY_VALUE
from knowledge.core.domain.hf_config import model_from_config
from knowledge.core.domain.layer_kinds import EAGER_ALONE
from knowledge.core.domain.types import Config

STEPS = 3
MIXED = {torch.float16: "fp16", torch.bfloat16: "bf16"}
_ONE_LAYER = {"gpt2": "c_attn", "phi3": "qkv_proj"}
_ONE_LAYER |= dict.fromkeys(("gpt_neox", "bloom", "falcon"), "query_key_value")
_RESULT = {"gpt2": "attn.c_proj", "opt": "out_proj"} | dict.fromkeys(
    ("gpt_neox", "bloom", "falcon", "phi"), "dense"
)


@dataclass(frozen=True, slots=True)
class Case:
    """One way to train a model.

    padded: rows of a batch differ in length, so that attention gets a mask. prepared: as peft prepares 4-bit
    weights. flash: on a GPU that has PyTorch's flash kernel, which a T4 lacks.
    """

    model: str
    batch: int = 2
    tokens: int = 512
    placed: str = QUERY_VALUE
    compute: torch.dtype = torch.float16
    in_4_bits: bool = False
    prepared: bool = True
    checkpointing: bool = False
    eager: bool = False
    padded: bool = True
    flash: bool = False
    layers: int | None = None

    @property
    def name(self) -> str:
        tuning = "QLoRA" if self.in_4_bits else "LoRA"
        words = [
            f"{self.model}, {tuning} on {self.placed}, {self.batch}x{self.tokens}, {MIXED[self.compute]}"
        ]
        words += [word for word in ("checkpointing", "eager", "flash") if getattr(self, word)]
        words += ["not prepared"] if self.in_4_bits and not self.prepared else []
        return ", ".join([*words, *([] if self.padded else ["no mask"])])

    def config(self) -> Config:
        """The configuration as an import would state it."""
        return Config(
            model_name=f"shape/{self.model}",
            tuning="qlora" if self.in_4_bits else "lora",
            gpu_model="A10G" if self.flash else "T4",
            number_gpus=1,
            tokens_per_sample=self.tokens,
            per_device_batch_size=self.batch,
            precision=str(self.compute).removeprefix("torch."),
            quantization="bnb-4bit" if self.in_4_bits else "none",
            target_modules=self.placed,
            optimizer_state="adamw-fp32",
            flash_attention=False if self.eager else None,
            gradient_checkpointing=self.checkpointing,
            unquantized_float32=self.prepared if self.in_4_bits else None,
            software=f"transformers {transformers.__version__}",
        )

    def table(self) -> ConfigTable:
        """The same as a column, its model read from its config.json."""
        name = f"shape/{self.model}"
        text = SHAPES[self.model].configuration(self.layers).to_json_string(use_diff=False)
        return columns([self.config()], shipped_catalogue().with_added({name: model_from_config(text, name)}))


@dataclass(slots=True)
class Held:
    """Bytes of a GPU. kept: for the backward pass, of activations and the loss."""

    weights: int = 0
    adapters: int = 0
    kept: int = 0
    allocated: int = 0
    reserved: int = 0


class Marked(Trainer):
    """The trainer, which notes what a forward pass leaves."""

    recorder: Recorder
    kept = 0

    def compute_loss(self, *given: Any, **named: Any) -> Any:
        before = self.recorder.held
        loss = super().compute_loss(*given, **named)
        self.kept = self.recorder.held - before
        return loss


def played(case: Case) -> Held:
    """Bytes of a GPU that some steps hold."""
    with fake_gpu(Attention(case.flash)), _as_on_cuda(case.padded), tempfile.TemporaryDirectory() as folder:
        trainer = _trainer(case, folder)
        model, optimizer = trainer.accelerator.prepare(trainer.model, trainer.optimizer)
        learning = [weight for weight in model.parameters() if weight.requires_grad]
        frozen = [one for one in _stored(model) if not one.requires_grad]
        recorder = trainer.recorder = Recorder()
        for one in (*frozen, *learning):
            recorder.watch(one)
        ids = torch.randint(3, 1000, (case.batch, case.tokens))
        inputs = {"input_ids": ids, "labels": ids} | (
            {"attention_mask": torch.ones_like(ids)} if case.padded else {}
        )
        with recorder:
            for _ in range(STEPS):
                trainer.training_step(model, dict(inputs), torch.tensor(ids.numel()))
                optimizer.step()
                gradients = _bytes(one.grad for one in learning)
                optimizer.zero_grad()
        states = [one for state in optimizer.state.values() for one in state.values() if one.dim()]
        found = Held(
            weights=_bytes(frozen),
            adapters=_bytes([*learning, *states]) + gradients,
            kept=trainer.kept,
            allocated=recorder.highest,
            reserved=reserved(recorder.events, 1),
        )
        del trainer, model, optimizer, learning, frozen, states, inputs, ids
    gc.collect()
    return found


def kept_by_layer(case: Case) -> float:
    """Bytes that one layer keeps, as the difference of two depths."""
    few, many = (played(replace(case, layers=layers)).kept for layers in (2, 4))
    return (many - few) / 2


def _trainer(case: Case, folder: str) -> Marked:
    """The trainer with its model, adapters and optimiser."""
    arguments = TrainingArguments(
        folder,
        use_cpu=True,
        bf16=True,
        gradient_checkpointing=case.checkpointing,
        per_device_train_batch_size=case.batch,
        optim="adamw_torch",
        report_to=[],
    )
    model = _built(case)
    trainer = Marked(model, arguments)
    # accelerate refuses fp16 without a GPU
    type(trainer.accelerator.state)._shared_state["_mixed_precision"] = MIXED[case.compute]
    trainer.create_optimizer()
    if case.checkpointing:
        model.enable_input_require_grads()
        model.gradient_checkpointing_enable(arguments.gradient_checkpointing_kwargs)
    return trainer


def _built(case: Case) -> Any:
    """The model with its adapters."""
    four_bits.install()
    from peft import LoraConfig, get_peft_model, prepare_model_for_kbit_training

    shape = SHAPES[case.model]
    attention = "eager" if case.eager or shape.architecture in EAGER_ALONE else "sdpa"
    model = AutoModelForCausalLM.from_config(
        shape.configuration(case.layers), dtype=case.compute, attn_implementation=attention
    )
    if case.in_4_bits:
        four_bits.quantise(model, case.compute)
        if case.prepared:
            model = prepare_model_for_kbit_training(model, use_gradient_checkpointing=case.checkpointing)
    adapters = LoraConfig(
        target_modules=_targets(shape.architecture, case.placed), r=16, task_type="CAUSAL_LM"
    )
    return get_peft_model(model, adapters).train()


def _targets(architecture: str, placed: str) -> str | list[str]:
    if placed == ALL_LINEAR:
        return "all-linear"
    one = _ONE_LAYER.get(architecture)
    read = [one] if one else ["q_proj", "v_proj"]
    if placed == ATTENTION:
        read += [*([] if one else ["k_proj"]), _RESULT.get(architecture, "o_proj")]
    return read


def _stored(model: Any) -> Iterator[torch.Tensor]:
    """All that the model holds, the scales of its 4-bit layers included."""
    yield from model.parameters()
    yield from model.buffers()
    for module in model.modules():
        if isinstance(module, four_bits.Linear4bit):
            yield from (module.scales, module.scales_of_scales)


def _bytes(tensors: Iterable[torch.Tensor]) -> int:
    storages = [one.untyped_storage() for one in tensors]
    return sum({int(one._cdata): one.nbytes() for one in storages}.values())


@contextmanager
def _as_on_cuda(padded: bool) -> Iterator[None]:
    """Let peft see autocast where it asks for CUDA's, and transformers whether rows are padded."""
    enabled, ignored = torch.is_autocast_enabled, masking_utils._ignore_causal_mask_sdpa
    packed = masking_utils.find_packed_sequence_indices
    torch.is_autocast_enabled = lambda *_: enabled("cpu")
    masking_utils._ignore_causal_mask_sdpa = lambda *_, **__: not padded
    masking_utils.find_packed_sequence_indices = lambda *_, **__: None
    try:
        yield
    finally:
        torch.is_autocast_enabled, masking_utils._ignore_causal_mask_sdpa = enabled, ignored
        masking_utils.find_packed_sequence_indices = packed


def ways(model: str, layers: int | None) -> list[Case]:
    """How each model is trained."""
    case = Case(model, layers=layers)
    quantised = replace(case, in_4_bits=True, placed=ALL_LINEAR)
    return [
        case,
        replace(case, placed=ALL_LINEAR, batch=1, tokens=1024, padded=False),
        replace(case, placed=ATTENTION, eager=True, batch=4),
        replace(case, checkpointing=True, batch=8, tokens=256),
        quantised,
        replace(quantised, prepared=False, batch=1, tokens=2048, padded=False),
        replace(quantised, checkpointing=True, batch=4, tokens=1024),
        replace(quantised, checkpointing=True, eager=True, batch=2, tokens=1024),
        replace(case, compute=torch.bfloat16, flash=True, padded=False, placed=ALL_LINEAR),
    ]


def errors(case: Case, held: Held) -> dict[str, float]:
    """Error of each predicted term, as a share of what is held."""
    memory = cost_model.memory(case.table())
    part = {name: float(getattr(memory, name)[0]) for name in Held.__slots__ if hasattr(memory, name)}
    allocated = sum(
        float(one[0]) for one in (memory.weights, memory.adapters, memory.activations, memory.logits)
    )
    part |= {"allocated": allocated, "reserved": allocated + float(memory.cached[0])}
    return {name: part[name] / getattr(held, name) - 1 for name in part}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--layers", type=int, help="so many instead of all")
    args, found = parser.parse_args(), []
    warnings.filterwarnings("ignore")
    logging.set_verbosity_error()
    torch.set_num_threads(1)
    print("| case | reserved, GB | weights | adapters | allocated | reserved |\n" + "| --- " * 6 + "|")
    for case in (case for model in SHAPES for case in ways(model, args.layers) if args.only in case.name):
        held = played(case)
        wrong = errors(case, held)
        found.append(wrong["reserved"])
        cells = (f"{held.reserved / 1e9:.2f}", *(f"{error:+.1%}" for error in wrong.values()))
        print(f"| {case.name} | {' | '.join(cells)} |", flush=True)
    mean, bias = sum(map(abs, found)) / len(found), sum(found) / len(found)
    print(f"{len(found)} cases, reserved: mean |error| {mean:.1%}, bias {bias:+.1%}, worst", end=" ")
    print(f"{min(found):+.1%} and {max(found):+.1%}")


if __name__ == "__main__":
    main()
