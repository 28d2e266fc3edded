"""What a chat template leaves out is read in another way, refused with its row, or counted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.trainer.runs import Run
from tests.trainer.train.data.foreign_models import CHATML, CHATML_TOKENS, foreign_model, foreign_tokenizer
from tests.trainer.train.data.test_torch_data import chat, prepared
from tests.trainer.train.data.test_torch_ends import learnt

pytestmark = pytest.mark.torch

ASK = "{% if add_generation_prompt %}A: {% endif %}"
# A system turn at the beginning alone; others are not looked at
FIRST_SYSTEM = (
    "{% if messages[0].role == 'system' %}S: {{ messages[0].content }}\n{% endif %}{% for m in messages %}"
    "{% if m.role == 'user' %}U: {{ m.content }}\n{% elif m.role == 'assistant' %}"
    "A: {{ m.content }}{{ eos_token }}\n{% endif %}{% endfor %}" + ASK
)
STRICT_SYSTEM = FIRST_SYSTEM.replace(
    "{% for m in messages %}",
    "{% for m in messages %}{% if m.role == 'developer' %}{{ raise_exception('unknown role') }}{% endif %}",
)
FIRST_DEVELOPER = FIRST_SYSTEM.replace("'system'", "'developer'")
ALTERNATING = (
    "{% for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('roles must take turns') }}{% endif %}{{ m.content }}{{ eos_token }}{% endfor %}"
)
BRIEF = "Be brief."


@pytest.mark.parametrize(
    ("template", "role", "read_as"),
    [
        (FIRST_SYSTEM, "developer", "system"),
        (STRICT_SYSTEM, "developer", "system"),
        (FIRST_DEVELOPER, "system", "developer"),
        (FIRST_SYSTEM, "system", ""),
        (CHATML, "developer", ""),
    ],
    ids=["left out", "refused", "the other way round", "known", "shown as it is"],
)
def test_instructions_are_read_as_the_role_that_the_template_has(
    tmp_path: Path, template: str, role: str, read_as: str, capsys: pytest.CaptureFixture[str]
):
    row = chat((role, BRIEF), ("user", "hi"), ("assistant", "Hello."))
    tokenizer = foreign_tokenizer(template, special=CHATML_TOKENS)
    text, _ = learnt(tmp_path, tokenizer, row)
    assert BRIEF in text
    told = capsys.readouterr().out
    note = f"the chat template knows no {role}: in 1 row of train.jsonl it is read as {read_as}"
    assert (note in told) == bool(read_as)


@pytest.mark.parametrize("role", ["system", "developer", "tool"])
def test_a_turn_that_is_left_out_is_refused_with_its_row(tmp_path: Path, role: str):
    from trainer.train.errors import TrainError

    good = chat(("user", "hi"), ("assistant", "Hello."))
    bad = chat(
        ("user", "hi"), ("assistant", "Hello."), (role, BRIEF), ("user", "and?"), ("assistant", "More.")
    )
    message = (
        rf"train.jsonl cannot be used: Row 3: .* leaves out what the {role} says in messages\[2\]. Write it"
    )
    with pytest.raises(TrainError, match=message):
        prepared(tmp_path, foreign_tokenizer(FIRST_SYSTEM), good, good, bad)
    twice = chat(("system", BRIEF), *((turn["role"], turn["content"]) for turn in bad["messages"]))
    with pytest.raises(TrainError, match=rf"Row 1: .* leaves out what the {role} says in messages\[3\]"):
        prepared(tmp_path / "alike", foreign_tokenizer(FIRST_SYSTEM), twice)


def test_a_template_that_takes_no_system_refuses_it_under_any_name(tmp_path: Path):
    from trainer.train.errors import TrainError

    row = chat(("system", BRIEF), ("user", "hi"), ("assistant", "Hello."))
    with pytest.raises(TrainError, match=r"Row 1: .*roles must take turns"):
        prepared(tmp_path, foreign_tokenizer(ALTERNATING), row)


def test_a_training_names_the_row_that_the_template_refuses(run: Run):
    run.model = foreign_model(run.models_dir, "alternating", foreign_tokenizer(ALTERNATING))
    good = chat(("user", "hi"), ("assistant", "Hello."))
    bad = chat(("user", "hi"), ("user", "you"), ("assistant", "Hello."))
    result = run.write([good] * 13 + [bad] + [good] * 3).train()
    assert result["outcome"] == "error"
    assert "train.jsonl cannot be used: Row 14:" in result["reason"]
    assert "roles must take turns" in result["reason"]
    result = run.write([good] * 5, [good, bad]).train()
    assert "validation.jsonl cannot be used: Row 2:" in result["reason"]


# Cuts what it takes for thoughts out of every answer; the prompt begins them
NO_THOUGHTS = (
    "{% for m in messages %}{% if m.role == 'user' %}U: {{ m.content }}\n{% elif m.role == 'assistant' %}A: "
    "{{ m.content.split('</think>')[-1] }}{{ eos_token }}\n{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}A: <think>\n{% endif %}"
)
UNASKED = NO_THOUGHTS.replace("A: <think>\n", "A: ")
OTHER_TAG = UNASKED.replace("</think>", "[/THINK]")


@pytest.mark.parametrize(
    ("template", "said", "text"),
    [
        (NO_THOUGHTS, {"content": "<think>\nhm\n</think>\n\n4"}, "A: <think>\n«hm\n</think>\n\n4</s>\n»"),
        (NO_THOUGHTS, {"content": "<think>hm</think>4"}, "A: <think>\n«hm</think>4</s>\n»"),
        (NO_THOUGHTS, {"content": "hm</think>4"}, "A: <think>\n«hm</think>4</s>\n»"),
        (NO_THOUGHTS, {"content": "4", "reasoning": "hm"}, "A: <think>\n«hm\n</think>\n\n4</s>\n»"),
        (NO_THOUGHTS, {"content": "4"}, "A: «4</s>\n»"),
        (UNASKED, {"content": "<think>hm</think>4"}, "A: «<think>hm</think>4</s>\n»"),
        (UNASKED, {"content": "4", "thinking": "hm"}, "A: «<think>\nhm\n</think>\n\n4</s>\n»"),
        (OTHER_TAG, {"content": "[THINK]hm[/THINK]4"}, "A: «[THINK]hm[/THINK]4</s>\n»"),
        (FIRST_SYSTEM, {"content": "<think>hm</think>4"}, "A: «<think>hm</think>4</s>\n»"),
    ],
)
def test_thoughts_of_the_last_answer_are_learnt(
    tmp_path: Path, template: str, said: dict[str, str], text: str
):
    row = chat(("user", "2+2?"), ("assistant", ""))
    row["messages"][-1] |= said
    assert learnt(tmp_path, foreign_tokenizer(template), row)[0] == f"U: 2+2?\n{text}"


def test_the_remedy_for_a_field_of_reasoning_keeps_the_thoughts(tmp_path: Path):
    from trainer.train.errors import TrainError

    row = chat(("user", "2+2?"), ("assistant", "4"))
    row["messages"][-1]["reasoning_content"] = "two and two"
    for number, template in enumerate((FIRST_SYSTEM, OTHER_TAG)):
        tokenizer = foreign_tokenizer(template)
        with pytest.raises(TrainError, match=r"does not show it the reasoning.*or write it into the content"):
            prepared(tmp_path / f"field{number}", tokenizer, row)
        moved = chat(("user", "2+2?"), ("assistant", "<think>two and two</think>4"))
        assert "two and two" in learnt(tmp_path / f"content{number}", tokenizer, moved)[0].partition("«")[2]


def test_thoughts_of_earlier_answers_are_counted_by_row(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    answers = (
        ("<think>a</think>1", "<think>b</think>2", "3"),
        ("1", "<think>b</think>2", "3"),
        ("1", "2", "3"),
    )
    rows = []
    for first, second, last in answers:
        turns = ("user", "x"), ("assistant", first), ("user", "y"), ("assistant", second)
        rows.append(chat(*turns, ("user", "z"), ("assistant", f"<think>c</think>{last}")))
    prepared(tmp_path, foreign_tokenizer(NO_THOUGHTS), *rows)
    told = capsys.readouterr().out
    assert "leaves out the thoughts of earlier answers in 2 rows of train.jsonl" in told
    assert "end a row of its own with each of these answers" in told


# Takes contents as parts alone, as templates of models that see images do
PARTS = (
    "{% for m in messages %}{{ m.role }}: {% for part in m.content %}"
    "{% if part.type == 'text' %}{{ part.text }}{% endif %}{% endfor %}"
    "{{ eos_token if m.role == 'assistant' }}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant: {% endif %}"
)


def test_a_template_that_takes_parts_is_given_parts(tmp_path: Path):
    row = chat(("system", BRIEF), ("user", "hi"), ("assistant", "Hello."))
    text, _ = learnt(tmp_path, foreign_tokenizer(PARTS), row)
    assert text == f"system: {BRIEF}\nuser: hi\nassistant: «Hello.</s>\n»"


# DeepSeek V3 joins the arguments of calls to other text
TEXT_ARGUMENTS = (
    "{% for m in messages %}{{ m.role }}: {{ m.content }}{% for c in m.tool_calls or [] %}"
    "{{ '<call>' + c.function.name + '\n' + c.function.arguments + '</call>' }}{% endfor %}"
    "{{ eos_token if m.role == 'assistant' }}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant: {% endif %}"
)


@pytest.mark.parametrize(
    ("template", "arguments"),
    [(TEXT_ARGUMENTS, '{"city": "Köln"}'), (TEXT_ARGUMENTS.replace(".arguments", ".arguments.city"), "Köln")],
    ids=["as text", "as an object"],
)
def test_arguments_of_calls_are_given_as_the_template_takes_them(
    tmp_path: Path, template: str, arguments: str
):
    call: dict[str, Any] = {"function": {"name": "find", "arguments": {"city": "Köln"}}}
    row = {
        "messages": [
            {"role": "user", "content": "Where?"},
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "content": "There."},
            {"role": "assistant", "content": "There.", "tool_calls": [call]},
        ]
    }
    called = f"<call>find\n{arguments}</call>"
    text, _ = learnt(tmp_path, foreign_tokenizer(template), row)
    expected = f"user: Where?\nassistant: «{called}</s>\n»tool: There.\nassistant: «There.{called}</s>\n»"
    assert text == expected.replace("ö", "��")  # bytes, one by one
