"""Tiny base models made on the spot, for machines without network.

The weights are the same on every machine. The models are untrained and exist to show and test
the whole path. Every weight is a pure function of its name (SHAKE-256 bytes as uniform
numbers), so no version of a random generator matters. The tokenizer is fixed too: ids 0 to 2
are pad, bos and eos, ids 3 to 258 the 256 bytes; one byte is one token.

    name                parameters  tied  type
    builtin/tiny-llama     804,736  no    llama
    builtin/tiny-qwen      772,608  yes   qwen2, with biases on query, key and value

Both: 4 layers, hidden 128, 4 heads, 2 kv heads, head_dim 32, mlp_width 352, vocab 259, context
2048.
"""

from __future__ import annotations

import hashlib
import math
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

PREFIX = "builtin/"
SHAPE = {
    "vocab_size": 259,
    "hidden_size": 128,
    "intermediate_size": 352,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 2048,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
MODELS: dict[str, dict[str, Any]] = {
    "builtin/tiny-llama": {"model_type": "llama", "tie_word_embeddings": False},
    "builtin/tiny-qwen": {"model_type": "qwen2", "tie_word_embeddings": True},
}
SPECIAL = ("<pad>", "<s>", "</s>")
# the unknown token is never used; without one, Qwen tokenizers add a token beyond the vocabulary
ROLES = dict(zip(("pad_token", "bos_token", "eos_token", "unk_token"), (*SPECIAL, SPECIAL[0]), strict=True))
CHAT_TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}{{ message.role }}: {{ message.content }}"
    "{% if message.role == 'assistant' %}{{ eos_token }}{% endif %}{{ '\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}assistant: {% endif %}"
)


def ensure(name: str, models_dir: Path) -> Path:
    """The folder of the builtin model `name` below `models_dir`, made at first use.

    Raises KeyError for an unknown name and OSError where nothing can be written.
    """
    folder = models_dir / name
    if not (folder / "config.json").is_file():
        settings = MODELS[name]
        folder.parent.mkdir(parents=True, exist_ok=True)
        aside = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
        _write(settings, aside)
        aside.chmod(0o755)
        publish(aside, folder)
    return folder


def publish(aside: Path, folder: Path) -> None:
    """Publish a model that several trainers may make at once.

    The first one wins, all are equal.
    """
    try:
        aside.rename(folder)
    except OSError:
        shutil.rmtree(aside)
        if not (folder / "config.json").is_file():
            raise


def _write(settings: dict[str, Any], folder: Path) -> None:
    from transformers import AutoConfig, AutoModelForCausalLM
    from transformers.utils import logging

    logging.disable_progress_bar()
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(**settings, **SHAPE))
    _fill(model)
    model.save_pretrained(folder)
    byte_tokenizer(SHAPE["max_position_embeddings"]).save_pretrained(folder)


def _fill(model: Any) -> None:
    """Fill the weights: norms one, biases zero, matrices uniform.

    The matrices have a variance of 1 / inputs, so that logits have a spread that adapters on a
    frozen head can use.
    """
    import torch

    with torch.no_grad():
        for name, weight in model.named_parameters():
            if name.endswith("bias"):
                weight.zero_()
            elif weight.dim() == 1:
                weight.fill_(1.0)
            else:
                noise = bytearray(hashlib.shake_256(name.encode()).digest(4 * weight.numel()))
                uniform = torch.frombuffer(noise, dtype=torch.int32).to(torch.float32) / 2.0**31
                weight.copy_(uniform.view(weight.shape) * math.sqrt(3 / weight.shape[-1]))


def byte_tokenizer(longest: int) -> Any:
    """One byte is one token; `longest`: tokens that the model reads at most."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    fast = Tokenizer(
        models.BPE(vocab={char: index for index, char in enumerate([*SPECIAL, *alphabet])}, merges=[])
    )
    fast.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, trim_offsets=False, use_regex=False)
    fast.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(
        tokenizer_object=fast,
        **ROLES,
        model_max_length=longest,
        chat_template=CHAT_TEMPLATE,
    )


def main(arguments: list[str]) -> int:
    """Write the model NAME into the new folder DIR.

    Run as `python -m trainer.builtin NAME DIR`.
    """
    if len(arguments) != 2 or PREFIX + arguments[0].removeprefix(PREFIX) not in MODELS:
        known = ", ".join(name.removeprefix(PREFIX) for name in MODELS)
        print(f"usage: python -m trainer.builtin NAME DIR   with NAME one of {known}", file=sys.stderr)
        return 2
    folder = Path(arguments[1])
    folder.mkdir(parents=True)
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    _write(MODELS[PREFIX + arguments[0].removeprefix(PREFIX)], folder)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
