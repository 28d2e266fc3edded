"""The parts of a row that the model is trained on."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.trainer.runs import PARAMS, Run
from trainer import builtin

pytestmark = pytest.mark.torch


@pytest.fixture
def tokenizer(models_dir: Path) -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(builtin.ensure("builtin/tiny-llama", models_dir))


def read(tmp_path: Path, tokenizer: Any, *rows: Any, longest: int = 500) -> list[tuple[str, str]]:
    """(what is read, what is trained) of each row, as text."""
    from trainer.train.data import IGNORED

    return [
        (tokenizer.decode(sample.ids), tokenizer.decode(sample.labels[sample.labels != IGNORED]))
        for sample in prepared(tmp_path, tokenizer, *rows, longest=longest).train
    ]


def prepared(
    tmp_path: Path, tokenizer: Any, *rows: Any, longest: int = 500, generation: Any = None, **earlier: Any
) -> Any:
    """The data that the only process of a node makes of a file."""
    import torch

    from trainer.train.data import prepare
    from trainer.train.distributed.process_group import World
    from trainer.train.events import Journal
    from trainer.train.settings import read_order

    params = {**PARAMS, "tokens_per_sample": longest}
    run = Run(tmp_path, tmp_path, params).write(list(rows))
    world, journal = World(0, 1, torch.device("cpu")), Journal(run.path / "events.jsonl")
    return prepare(read_order(run.path), world, tokenizer, journal, lambda: False, earlier, generation)


def chat(*turns: tuple[str, str] | tuple[str, str, int]) -> dict[str, Any]:
    names = ("role", "content", "weight")
    return {"messages": [dict(zip(names, turn, strict=False)) for turn in turns]}


def test_of_prompt_and_completion_only_the_completion_and_the_end_are_trained(tmp_path: Path, tokenizer: Any):
    found = read(tmp_path, tokenizer, {"prompt": "Größe?", "completion": " groß"})
    assert found == [("Größe? groß</s>", " groß</s>")]


@pytest.fixture
def word_tokenizer() -> Any:
    """As most models have it: a space belongs to the word after it."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    words = {word: index for index, word in enumerate(("</s>", "Answer", ":", "\u0120yes", "\u0120"))}
    fast = Tokenizer(models.WordLevel(words, unk_token="</s>"))
    fast.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, trim_offsets=False)
    return PreTrainedTokenizerFast(tokenizer_object=fast, eos_token="</s>")


@pytest.mark.parametrize("row", [("Answer:", " yes"), ("Answer: ", "yes")])
def test_a_token_that_prompt_and_completion_share_is_trained(
    tmp_path: Path, word_tokenizer: Any, row: tuple[str, str]
):
    """Else the only word of a short answer would never be learnt."""
    prompt, completion = row
    found = read(tmp_path, word_tokenizer, {"prompt": prompt, "completion": completion})
    assert [trained for _, trained in found] == ["\u0120yes </s>"]


def test_of_a_chat_only_the_assistants_turns_are_trained(tmp_path: Path, tokenizer: Any):
    row = chat(("user", "a"), ("assistant", "b"), ("user", "c"), ("assistant", "d"))
    assert read(tmp_path, tokenizer, row)[0][1] == "b</s>\nd</s>\n"


def test_a_weight_of_zero_keeps_a_turn_out_of_the_loss(tmp_path: Path, tokenizer: Any):
    row = chat(("user", "a"), ("assistant", "b", 0), ("user", "c"), ("assistant", "d", 1))
    assert read(tmp_path, tokenizer, row)[0][1] == "d</s>\n"


def test_without_a_chat_template_a_chat_is_lines_of_role_and_content(tmp_path: Path, tokenizer: Any):
    tokenizer.chat_template = None
    row = chat(("system", "s"), ("user", "a"), ("assistant", "b"))
    assert read(tmp_path, tokenizer, row) == [("system: s\nuser: a\nassistant: b</s>\n", "b</s>\n")]


def test_a_template_that_rewrites_earlier_turns_never_trains_other_roles(tmp_path: Path, tokenizer: Any):
    tokenizer.chat_template = (
        "{% for m in messages %}{{ m.role }}: "
        "{{ '(cut)' if m.role == 'assistant' and not loop.last else m.content }}{{ '\\n' }}{% endfor %}"
        "{% if add_generation_prompt %}assistant: {% endif %}"
    )
    row = chat(("user", "a"), ("assistant", "b"), ("user", "c"), ("assistant", "d"))
    assert read(tmp_path, tokenizer, row)[0][1] == "d\n</s>"


def test_a_template_that_refuses_a_row_is_named(tmp_path: Path, tokenizer: Any):
    from trainer.train.errors import TrainError

    tokenizer.chat_template = "{{ raise_exception('no system turns') }}"
    with pytest.raises(TrainError, match="chat template refuses a row: no system turns"):
        read(tmp_path, tokenizer, chat(("system", "a"), ("assistant", "b")))


def test_long_rows_are_cut_and_rows_without_a_completion_left_do_not_count(
    tmp_path: Path, tokenizer: Any, capsys: Any
):
    rows = {"prompt": "ab", "completion": "c" * 20}, {"prompt": "a" * 20, "completion": "g"}
    cut = [("ab" + "c" * 14, "c" * 14), ("a" * 16, "")]
    assert read(tmp_path, tokenizer, *rows, longest=16) == cut
    assert "1 of 2 rows" in capsys.readouterr().out


def test_rows_that_are_cut_are_counted_with_what_they_lose(tmp_path: Path, tokenizer: Any, capsys: Any):
    rows = {"text": "a" * 31}, {"text": "b" * 15}, {"text": "c" * 47}
    data = prepared(tmp_path, tokenizer, *rows, longest=16)
    note = "2 rows of train.jsonl had more than 16 tokens and were cut, which lost 50.0% of all tokens"
    assert note in data.told
    assert note in capsys.readouterr().out
    stops = SimpleNamespace(eos_token_id=tokenizer.eos_token_id)
    assert prepared(tmp_path / "whole", tokenizer, *rows, longest=48, generation=stops).told == ()


def test_only_rows_without_a_completion_left_is_an_error(tmp_path: Path, tokenizer: Any):
    from trainer.train.errors import TrainError

    with pytest.raises(TrainError, match="Raise tokens_per_sample"):
        read(tmp_path, tokenizer, {"prompt": "a" * 20, "completion": "g"}, longest=16)


def test_a_bad_row_is_named_by_its_line(tmp_path: Path, tokenizer: Any):
    from trainer.train.errors import TrainError

    with pytest.raises(TrainError, match=r"train.jsonl cannot be used: line 2: completion is missing"):
        read(tmp_path, tokenizer, {"prompt": "a", "completion": "b"}, {"prompt": "a"})


def test_a_micro_batch_is_padded_to_its_longest_row():
    import numpy as np
    import torch

    from trainer.train.data import Sample, collate

    long, short = Sample(np.int32([5, ~6, ~7]), 2), Sample(np.int32([~8]), 0)
    batch = collate([long, short], 0, torch.device("cpu"))
    assert batch.ids.tolist() == [[5, 6, 7], [8, 0, 0]]
    assert batch.labels.tolist() == [[-100, 6, 7], [8, -100, -100]]
