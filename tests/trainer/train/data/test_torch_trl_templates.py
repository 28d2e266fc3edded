"""Real chat templates, as TRL carries them: what is learnt is what a plain implementation says.

TRL is in no environment of ours. Where somebody installed it, its files are read, and none of its
code runs. Some templates have a variant whose author marked what the assistant says.
"""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.trainer.train.data.foreign_models import foreign_tokenizer
from tests.trainer.train.data.test_torch_data import prepared

TRL = find_spec("trl")
FOLDER = Path(TRL.submodule_search_locations[0]) / "chat_templates" if TRL else None  # type: ignore[index]
FILES = sorted(FOLDER.glob("*.jinja")) if FOLDER else []
NAMES = [path.stem for path in FILES if not path.stem.endswith("_training")]
pytestmark = [pytest.mark.torch, pytest.mark.skipif(not NAMES, reason="TRL is not installed")]

SPECIAL = re.compile(r"<[|｜][\w▁]+[|｜]>|<\|?\w*turn\w*\|?>|<end_of_utterance>|<bos>|\[gMASK\]|<sop>")
OF_PARTS = ("idefics3", "llava_next", "smolvlm")  # of models that see images
UNLIKE = (("diffusion_gemma", "tools"),)  # its prompt behind a result lacks the head that it writes there
NO_END = ("<s>", "<|im_start|>", "<bos>")
WEATHER = {"name": "weather", "description": "tells it", "parameters": {"type": "object", "properties": {}}}
CALL = {"id": "abcdefghi", "type": "function", "function": {"name": "weather", "arguments": {"city": "Bonn"}}}
USER, ANSWER = {"role": "user", "content": "hi there"}, {"role": "assistant", "content": "Hello."}
NEXT, LAST = {"role": "user", "content": "and now?"}, {"role": "assistant", "content": "More words."}
THOUGHT = {"reasoning_content": "I think so"}
RESULT = {"role": "tool", "content": "sunny", "tool_call_id": "abcdefghi", "name": "weather"}
CHATS: dict[str, list[dict[str, Any]]] = {
    "one answer": [USER, ANSWER],
    "two": [USER, ANSWER, NEXT, LAST],
    "system": [{"role": "system", "content": "Be brief."}, USER, ANSWER],
    "reasoning": [USER, ANSWER | THOUGHT],
    "reasoning twice": [USER, ANSWER | {"reasoning_content": "Before that"}, NEXT, LAST | THOUGHT],
    "weight 0": [USER, ANSWER | {"weight": 0}, NEXT, LAST],
    "tools": [USER, {"role": "assistant", "content": "", "tool_calls": [CALL]}, RESULT, LAST],
}


def in_parts(turns: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**turn, "content": [{"type": "text", "text": turn["content"]}]} for turn in turns]


def row_of(turns: list[dict[str, Any]]) -> dict[str, Any]:
    has_calls = any("tool_calls" in turn for turn in turns)
    return {
        "messages": turns,
        **({"tools": [{"type": "function", "function": WEATHER}]} if has_calls else {}),
    }


def tokens_of(folder: Path, tokenizer: Any, row: dict[str, Any]) -> tuple[list[int], list[int]]:
    """Ids of a row, and places of those that are learnt."""
    (sample,) = prepared(folder, tokenizer, row, longest=16_384).train
    return sample.ids.tolist(), [place for place, code in enumerate(sample.codes.tolist()) if code < 0]


def plainly(tokenizer: Any, text: str, spans: list[tuple[int, int]]) -> tuple[list[int], list[int]]:
    """The same by a plain rule: every span goes on to its end, and the last one gets one if it has none.

    White space behind an end is of the turn, too.
    """
    special = [token for token in tokenizer.all_special_tokens if token not in NO_END]
    ids: list[int] = []
    learnt: list[int] = []

    def add(part: str, *, learn: bool) -> None:
        more = tokenizer(part, add_special_tokens=False)["input_ids"]
        learnt.extend(range(len(ids), len(ids) + len(more)) if learn else ())
        ids.extend(more)

    at = 0
    for begin, end in spans:
        ended = text[begin:end].rstrip().endswith(tuple(special))
        rest = text[end:].lstrip()
        following = next((token for token in special if rest.startswith(token)), "")
        if ended or following or not rest:
            end = len(text) - len(rest) + (0 if ended else len(following))
        add(text[at:begin], learn=False)
        add(text[begin:end] + ("" if ended or rest else tokenizer.eos_token), learn=True)
        at = end
    add(text[at:], learn=False)
    return ids, learnt


def marked(
    tokenizer: Any, template: str, row: dict[str, Any], *, as_parts: bool
) -> tuple[str, list[tuple[int, int]]]:
    """A chat by a template whose author marked what the assistant says; pieces that touch are one."""
    from transformers.utils.chat_template_utils import render_jinja_template

    turns = [{**turn, "thinking": turn.get("reasoning_content")} for turn in row["messages"]]
    turns = [{key: value for key, value in turn.items() if value is not None} for turn in turns]
    if as_parts:
        turns = in_parts(turns)
    texts, spans = render_jinja_template(
        [turns], tools=row.get("tools"), chat_template=template, return_assistant_tokens_mask=True,
        **tokenizer.special_tokens_map,
    )  # fmt: skip
    joined: list[tuple[int, int]] = []
    for begin, end in spans[0]:
        if joined and joined[-1][1] == begin:
            begin = joined.pop()[0]
        if begin < end:
            joined.append((begin, end))
    return texts[0], joined


@pytest.mark.parametrize("name", NAMES)
def test_learnt_tokens_are_those_that_a_plain_implementation_learns(tmp_path: Path, name: str):
    from trainer.train.errors import TrainError

    assert FOLDER is not None
    template = (FOLDER / f"{name}.jinja").read_text(encoding="utf-8")
    variant = FOLDER / f"{name}_training.jinja"
    tokenizer = foreign_tokenizer(template, special=sorted(set(SPECIAL.findall(template))))
    compared, refused = [], []
    for what, turns in CHATS.items():
        row = row_of(turns)
        try:
            ids, learnt = tokens_of(tmp_path / what, tokenizer, row)
        except TrainError as wrong:
            refused.append((what, str(wrong)))
            continue
        said = tokenizer.decode([ids[place] for place in learnt])
        for turn in turns:
            is_learnt = turn["role"] == "assistant" and turn.get("weight", 1)
            assert not turn["content"] or (turn["content"] in said) == bool(is_learnt), (what, said)
        end = tokenizer.convert_ids_to_tokens(ids[learnt[-1]])
        assert not end.strip("ĊĠ") or end in tokenizer.all_special_tokens, (what, said)
        if not variant.exists() or (name, what) in UNLIKE:
            continue
        as_parts = name in OF_PARTS
        text, spans = marked(tokenizer, variant.read_text(encoding="utf-8"), row, as_parts=as_parts)
        answers = [index for index, turn in enumerate(turns) if turn["role"] == "assistant"]
        if not tokenizer.decode(ids).startswith(text) or len(spans) != len(answers):
            continue  # the variant writes the chat in another way
        kept = []
        for index, (begin, end_of_span) in zip(answers, spans, strict=True):
            prompt = tokenizer.apply_chat_template(
                in_parts(turns[:index]) if as_parts else turns[:index],
                tools=row.get("tools"), tokenize=False, add_generation_prompt=True,
            )  # fmt: skip
            if turns[index].get("weight", 1):
                asked = next(
                    (at for at, pair in enumerate(zip(prompt, text, strict=False)) if len({*pair}) > 1),
                    len(prompt),
                )
                kept.append((asked if text.startswith(prompt) else max(begin, asked), end_of_span))
        assert (ids, learnt) == plainly(tokenizer, text, kept), (what, said)
        compared.append(what)
    print(name, "compared:", compared, "refused:", refused)
    assert "one answer" not in dict(refused)
    assert all(re.search("does not show it|leaves out what|refuses a row", why) for _, why in refused)
