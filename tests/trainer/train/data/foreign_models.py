"""Tiny base models with the tokens and templates of models that people bring."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from trainer import builtin

CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
CHATML_TOKENS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
# GLM: what begins the next turn ends this one
NEXT_ROLE = (
    "[gMASK]<sop>{% for m in messages %}<|{{ m.role }}|>\n{{ m.content }}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>\n{% endif %}"
)
NEXT_ROLE_TOKENS = ("[gMASK]", "<sop>", "<|user|>", "<|assistant|>", "<|system|>", "<|endoftext|>")


def foreign_tokenizer(
    template: str | None,
    *,
    special: Sequence[str] = (),
    eos: str | None = "</s>",
    before: Sequence[str] = (),
    after: Sequence[str] = (),
    **roles: str | None,
) -> Any:
    """One byte is one token. before, after: what it puts around every text by itself."""
    from tokenizers.processors import TemplateProcessing

    tokenizer = builtin.byte_tokenizer(2048)
    tokenizer.add_special_tokens({"additional_special_tokens": list(special)})
    tokenizer.eos_token, tokenizer.chat_template = eos, template
    for role, token in roles.items():
        setattr(tokenizer, role, token)
    if before or after:
        around = [*before, "$A", *after]
        tokens = [(token, tokenizer.convert_tokens_to_ids(token)) for token in (*before, *after)]
        tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
            single=around, pair=[*around, "$B"], special_tokens=tokens
        )
    return tokenizer


def foreign_model(models_dir: Path, name: str, tokenizer: Any, *, vocabulary: int | None = None) -> str:
    """Write a model for this tokenizer into the folder of models and return its name.

    vocabulary: tokens that it has embeddings for, if not all.
    """
    from transformers import AutoConfig, AutoModelForCausalLM

    size = len(tokenizer) if vocabulary is None else vocabulary
    shape = {
        **builtin.SHAPE,
        "vocab_size": size,
        "eos_token_id": tokenizer.eos_token_id,
        "num_hidden_layers": 2,
    }
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model("llama", **shape))
    folder = models_dir / "team" / name
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return f"team/{name}"
