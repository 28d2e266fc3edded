"""Builtin models are the same on every machine.

Their digests are written down here.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from trainer import builtin

pytestmark = pytest.mark.torch

FACTS = {
    "builtin/tiny-llama": (804_736, "f11078a9082b88aef336c78ed7a7e922f00f5adb9c14348b612d1fc564e96907"),
    "builtin/tiny-qwen": (772_608, "a391a500daa49b3d33a40bde8fb8dcfb3f6b8a687018a0761cc2cda37a6b8ad5"),
}


def load(folder: Path) -> tuple[Any, Any]:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    return AutoModelForCausalLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)


@pytest.mark.parametrize("name", sorted(builtin.MODELS))
def test_weights_are_the_same_everywhere(name: str, models_dir: Path):
    model, tokenizer = load(builtin.ensure(name, models_dir))
    digest = hashlib.sha256()
    for key, weight in sorted(model.named_parameters()):
        digest.update(key.encode() + weight.detach().numpy().tobytes())
    assert (sum(weight.numel() for weight in model.parameters()), digest.hexdigest()) == FACTS[name]
    assert len(tokenizer) == model.config.vocab_size


@pytest.mark.parametrize("name", sorted(builtin.MODELS))
def test_one_byte_is_one_token_and_nothing_is_lost(name: str, models_dir: Path):
    _, tokenizer = load(builtin.ensure(name, models_dir))
    text = "  Grüße,\tdon't\r\n 1234 – 漢字 🎈\n"
    ids = tokenizer(text)["input_ids"]
    assert len(ids) == len(text.encode())
    assert tokenizer.decode(ids) == text
    assert tokenizer("<s></s><pad>")["input_ids"] == [1, 2, 0]


def test_the_chat_template_marks_turns_and_ends_the_assistants(models_dir: Path):
    _, tokenizer = load(builtin.ensure("builtin/tiny-llama", models_dir))
    turns = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yo"}]
    assert tokenizer.apply_chat_template(turns, tokenize=False) == "<s>user: hi\nassistant: yo</s>\n"
    prompt = tokenizer.apply_chat_template(turns[:1], tokenize=False, add_generation_prompt=True)
    assert prompt == "<s>user: hi\nassistant: "


def test_the_command_writes_the_same_model_into_a_folder(tmp_path: Path, models_dir: Path):
    assert builtin.main(["tiny-qwen", str(tmp_path / "mine")]) == 0
    same = builtin.ensure("builtin/tiny-qwen", models_dir)
    for path in same.iterdir():
        assert (tmp_path / "mine" / path.name).read_bytes() == path.read_bytes()
    assert builtin.main(["tiny-gpt", str(tmp_path / "other")]) == 2


def test_two_makers_at_once_do_not_disturb_each_other(tmp_path: Path):
    folder, aside = tmp_path / "model", tmp_path / "aside"
    for path in (folder, aside):
        path.mkdir()
        (path / "config.json").write_text("{}")
    builtin.publish(aside, folder)
    assert folder.is_dir()
    assert not aside.exists()
