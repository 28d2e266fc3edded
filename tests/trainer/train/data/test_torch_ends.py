"""What is learnt begins and ends as the model meets it when it is used."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.trainer.runs import CHATS, Run
from tests.trainer.train.data.foreign_models import (
    CHATML,
    CHATML_TOKENS,
    NEXT_ROLE,
    NEXT_ROLE_TOKENS,
    foreign_model,
    foreign_tokenizer,
)
from tests.trainer.train.data.test_torch_data import chat, prepared

pytestmark = pytest.mark.torch

ONE = chat(("user", "hi"), ("assistant", "Hello."))
TWO = chat(("user", "hi"), ("assistant", "Hello."), ("user", "and?"), ("assistant", "More."))


class Generation:
    """The part of a generation configuration that counts here."""

    def __init__(self, *eos: int) -> None:
        self.eos_token_id = list(eos)


def learnt(tmp_path: Path, tokenizer: Any, row: dict[str, Any], **more: Any) -> tuple[str, list[str]]:
    """The whole text of a row, and with «» around what is learnt; tokens that end it by text."""
    data = prepared(tmp_path, tokenizer, row, **more)
    (sample,) = data.train
    text, inside = "", False
    for token, code in zip(sample.ids.tolist(), sample.codes.tolist(), strict=True):
        text += "" if inside == (code < 0) else "«" if code < 0 else "»"
        inside = code < 0
        text += tokenizer.decode([token])
    return text + "»" * inside, tokenizer.convert_ids_to_tokens(list(data.ends))


MARKED = (
    "{{ bos_token }}{% for m in messages %}{% if m.role == 'assistant' %}A: {% generation %}{{ m.content }}"
    "{% endgeneration %}{{ eos_token }}\n{% else %}U: {{ m.content }}\n{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}A: {% endif %}"
)
# Phi 3: the last turn ends with one token more
PHI = (
    "{% for m in messages %}<|{{ m.role }}|>\n{{ m.content }}<|end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>\n{% else %}{{ eos_token }}{% endif %}"
)
PHI_TOKENS = ("<|user|>", "<|assistant|>", "<|end|>", "<|endoftext|>")
# gpt-oss: <|end|> ends turns of the past, <|return|> what the model says
HARMONY = (
    "{% for m in messages %}<|start|>{{ m.role }}<|message|>{{ m.content }}"
    "{{ '<|return|>' if loop.last and m.role == 'assistant' else '<|end|>' }}{% endfor %}"
    "{% if add_generation_prompt %}<|start|>assistant{% endif %}"
)
HARMONY_TOKENS = ("<|start|>", "<|message|>", "<|return|>", "<|end|>")
# A closing word that is no token, written between the turns
WORDS = (
    "{% for m in messages %}{{ '' if loop.first else '\n--\n' }}{{ m.role }}: {{ m.content }}{% endfor %}"
    "{{ '\n--\nassistant: ' if add_generation_prompt }}"
)


@pytest.mark.parametrize(
    ("template", "special", "eos", "row", "text", "ends"),
    [
        (CHATML, CHATML_TOKENS, "<|endoftext|>", ONE,
         "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n«Hello.<|im_end|>\n»", ["<|im_end|>"]),
        (NEXT_ROLE, NEXT_ROLE_TOKENS, "<|endoftext|>", TWO,
         "[gMASK]<sop><|user|>\nhi<|assistant|>\n«Hello.<|user|>»\nand?<|assistant|>\n«More.<|endoftext|>»",
         ["<|user|>"]),
        (MARKED, (), "</s>", TWO, "<s>U: hi\nA: «Hello.</s>»\nU: and?\nA: «More.</s>»\n", []),
        (PHI, PHI_TOKENS, "<|endoftext|>", TWO,
         "<|user|>\nhi<|end|>\n<|assistant|>\n«Hello.<|end|>\n»<|user|>\nand?<|end|>\n<|assistant|>\n"
         "«More.<|end|>\n<|endoftext|>»", []),
        (HARMONY, HARMONY_TOKENS, "<|return|>", TWO,
         "<|start|>user<|message|>hi<|end|><|start|>assistant«<|message|>Hello.<|end|>»"
         "<|start|>user<|message|>and?<|end|><|start|>assistant«<|message|>More.<|return|>»", []),
        (WORDS, (), "</s>", TWO,
         "user: hi\n--\nassistant: «Hello.»\n--\nuser: and?\n--\nassistant: «More.</s>»", []),
    ],
    ids=["base model", "next role", "generation block", "one token more", "other end at last", "words"],
)  # fmt: skip
def test_a_learnt_turn_ends_in_a_token_that_stops_a_model(
    tmp_path: Path, template: str, special: Sequence[str], eos: str, row: dict[str, Any], text: str,
    ends: list[str],
):  # fmt: skip
    tokenizer = foreign_tokenizer(template, special=special, eos=eos)
    generation = Generation(tokenizer.eos_token_id)
    assert learnt(tmp_path, tokenizer, row, generation=generation) == (text, ends)


def test_turns_that_were_given_an_end_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    tokenizer = foreign_tokenizer(NEXT_ROLE, special=NEXT_ROLE_TOKENS, eos="<|endoftext|>")
    prepared(tmp_path, tokenizer, TWO, TWO, ONE)
    told = capsys.readouterr().out
    assert "2 turns of train.jsonl were given an end (<|user|>)" in told
    assert "3 turns of train.jsonl were given an end (<|endoftext|>)" in told
    prepared(tmp_path / "words", foreign_tokenizer(WORDS), TWO)
    assert "1 turn of train.jsonl within chats end in no token that stops a model" in capsys.readouterr().out


def test_a_turn_of_no_weight_is_given_no_end(tmp_path: Path):
    tokenizer = foreign_tokenizer(NEXT_ROLE, special=NEXT_ROLE_TOKENS, eos="<|endoftext|>")
    row = chat(("user", "hi"), ("assistant", "Hello.", 0), ("user", "and?"), ("assistant", "More."))
    text, _ = learnt(tmp_path, tokenizer, row)
    assert text.count("«") == 1
    assert text.endswith("«More.<|endoftext|>»")
    row["messages"][1]["weight"], row["messages"][3]["weight"] = 1, 0
    text, ends = learnt(tmp_path / "last", tokenizer, row)
    assert text.endswith("«Hello.<|user|>»\nand?<|assistant|>\nMore.")
    assert ends == ["<|user|>"]


def test_chats_without_any_known_end_are_refused(tmp_path: Path):
    from trainer.train.errors import TrainError

    with pytest.raises(TrainError, match=r"would never learn to stop\. Choose a model"):
        prepared(tmp_path, foreign_tokenizer(WORDS, eos=None), ONE)
    with pytest.raises(TrainError, match="neither a chat template nor an end-of-sequence token"):
        prepared(tmp_path / "plain", foreign_tokenizer(None, eos=None), ONE)
    tokenizer = foreign_tokenizer(CHATML, special=CHATML_TOKENS, eos=None)
    assert learnt(tmp_path / "ended", tokenizer, ONE)[1] == ["<|im_end|>"]
    tokenizer = foreign_tokenizer(WORDS, special=("<|stop|>",), eos=None)
    stop = Generation(tokenizer.convert_tokens_to_ids("<|stop|>"))
    assert learnt(tmp_path / "known", tokenizer, ONE, generation=stop)[0].endswith("«Hello.<|stop|>»")


@pytest.mark.parametrize(
    ("row", "text"),
    [
        ({"text": "One.</s>"}, "«One.</s>»"),
        ({"text": "One.</s>\n"}, "«One.</s>\n»"),
        ({"text": "</s>One."}, "«</s>One.</s>»"),
        ({"prompt": "1+1? ", "completion": "2</s>"}, "1+1? «2</s>»"),
        ({"prompt": "1+1? ", "completion": "2<|im_end|>"}, "1+1? «2<|im_end|>»"),
        ({"prompt": "1+1? ", "completion": "2"}, "1+1? «2</s>»"),
    ],
)
def test_a_text_has_one_end(tmp_path: Path, row: dict[str, str], text: str):
    tokenizer = foreign_tokenizer(None, special=CHATML_TOKENS)
    generation = Generation(tokenizer.eos_token_id, tokenizer.convert_tokens_to_ids("<|im_end|>"))
    assert learnt(tmp_path, tokenizer, row, generation=generation) == (text, [])


@pytest.mark.parametrize(
    ("around", "text"),
    [
        ({"before": ["<s>"]}, "<s>«One.</s>»"),
        ({"before": ["[gMASK]", "<sop>"], "special": ("[gMASK]", "<sop>")}, "[gMASK]<sop>«One.</s>»"),
        ({"after": ["</s>"]}, "«One.</s>»"),
        ({"after": ["</s>"], "bos_token": "</s>"}, "«One.</s>»"),  # no end is taken for a beginning
        ({"before": ["</s>"], "bos_token": "</s>"}, "</s>«One.</s>»"),
    ],
    ids=["one token", "two tokens", "an end", "an end that is the beginning, too", "OPT"],
)
def test_a_text_begins_as_the_tokenizer_begins_it(tmp_path: Path, around: dict[str, Any], text: str):
    assert learnt(tmp_path, foreign_tokenizer(None, **around), {"text": "One."})[0] == text
    first = text.partition("«")[0]
    own = learnt(tmp_path / "own", foreign_tokenizer(None, **around), {"text": f"{first}One."})[0]
    assert own.replace("«", "") == text.replace("«", "")


def test_a_chat_begins_as_its_template_begins_it(tmp_path: Path):
    tokenizer = foreign_tokenizer(CHATML, special=CHATML_TOKENS, before=["<s>"])
    assert learnt(tmp_path, tokenizer, ONE)[0].startswith("<|im_start|>user")


def test_without_a_template_each_answer_ends_and_the_template_goes_out_with_the_result(run: Run):
    from transformers import AutoTokenizer

    run.model = foreign_model(run.models_dir, "no-template", foreign_tokenizer(None, before=["<s>"]))
    assert run.write([TWO], [ONE]).train()["outcome"] == "succeeded"
    tokenizer = AutoTokenizer.from_pretrained(run.path / "output")
    text = "<s>user: hi\nassistant: Hello.</s>\nuser: and?\nassistant: More.</s>\n"
    assert tokenizer.apply_chat_template(TWO["messages"], tokenize=False) == text
    before, found, _ = text.rpartition("More.")
    assert found
    asked = TWO["messages"][:3]
    assert tokenizer.apply_chat_template(asked, tokenize=False, add_generation_prompt=True) == before
    run.path = run.path.with_name("texts")
    assert run.write([{"text": "One."}]).train()["outcome"] == "succeeded"
    assert AutoTokenizer.from_pretrained(run.path / "output").chat_template is None


def test_calls_tools_and_reasoning_are_in_the_template_of_a_model_without_one(tmp_path: Path):
    call = {"id": "1", "function": {"name": "open", "arguments": {"shop": "Ö"}}}
    tool = {"type": "function", "function": {"name": "open"}}
    row = {
        "messages": [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": "Wait.", "reasoning": "hm", "tool_calls": [call, call]},
            {"role": "tool", "content": "yes"},
            {"role": "assistant", "content": "Open."},
        ],
        "tools": [tool],
    }
    called = '{"name": "open", "arguments": {"shop": "Ö"}}'
    text = (
        'tools: [{"type": "function", "function": {"name": "open"}}]\nuser: hi\n'
        f"assistant: hm\nWait.\n{called}\n{called}</s>\ntool: yes\nassistant: Open.</s>\n"
    )
    tokenizer = foreign_tokenizer(None)
    (sample,) = prepared(tmp_path, tokenizer, row, generation=Generation(2)).train
    assert tokenizer.decode(sample.ids) == text


@pytest.mark.parametrize("tuning", ["full", "lora"])
def test_the_end_that_was_learnt_is_announced(run: Run, tuning: str, capsys: pytest.CaptureFixture[str]):
    """Also where the base model's settings contradict each other."""
    from transformers import GenerationConfig

    tokenizer = foreign_tokenizer(
        CHATML, special=CHATML_TOKENS, eos="<|endoftext|>", pad_token="<|endoftext|>"
    )
    run.model = foreign_model(run.models_dir, f"base-{tuning}", tokenizer)
    settings = run.models_dir / run.model / "generation_config.json"
    settings.write_text(
        json.dumps({**json.loads(settings.read_text()), "temperature": 0.5, "do_sample": False})
    )
    run.params |= {"tuning": tuning, "max_steps": 1}
    assert run.write(CHATS).train()["outcome"] == "succeeded"
    assert "what is learnt ends in <|im_end|>; the result names it as a stop" in capsys.readouterr().out
    eos, end = tokenizer.convert_tokens_to_ids(["<|endoftext|>", "<|im_end|>"])
    generation = GenerationConfig.from_pretrained(run.path / "output")
    assert (generation.eos_token_id, generation.temperature) == ([eos, end], 0.5)
    assert "Answers end in `<|im_end|>`" in (run.path / "output" / "README.md").read_text()
    again = Run(run.path.with_name("again"), run.models_dir, run.params, run.model)
    again.write(CHATS, tokens=run.path / "tokens").train()  # of tokens that are taken over
    assert GenerationConfig.from_pretrained(again.path / "output").eos_token_id == [eos, end]


def test_a_padding_token_that_the_model_has_no_embedding_for_is_never_looked_up(run: Run):
    tokenizer = foreign_tokenizer(CHATML, special=CHATML_TOKENS)
    known = len(tokenizer)
    tokenizer.add_special_tokens({"pad_token": "[PAD]"})
    run.model = foreign_model(run.models_dir, "padded", tokenizer, vocabulary=known)
    assert run.write(CHATS, CHATS[:3]).train()["outcome"] == "succeeded"
    result = run.write([*CHATS, chat(("user", "What is [PAD]?"), ("assistant", "A token."))]).train()
    assert "Row 9: [PAD] stands in its text, and the model has no embedding for it" in result["reason"]
    tokenizer.add_tokens(["<new>", "<newer>"])
    run.model = foreign_model(run.models_dir, "grown", tokenizer, vocabulary=known)
    reason = run.write(CHATS).train()["reason"]
    assert "more tokens than the model, which has no embedding for <new>, <newer>. Resize" in reason
