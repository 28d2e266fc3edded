"""Which parts of a rendered chat its assistant says."""

from __future__ import annotations

import re
from typing import Any

from trainer.train.data.turns import REASONING, Reading, Turn
from trainer.train.errors import TrainError

Span = tuple[int, int]
_GENERATION = re.compile(r"\{%-?\s*generation\s*-?%\}")
_KEPT = ("role", "name", "tool_call_id")
_PRIVATE_USE = range(0xE000, 0xF900)  # characters without a meaning


class Drawn:
    """One chat, drawn as a whole, in part and with changes.

    The latter two serve to find the turns in it.
    """

    def __init__(self, tokenizer: Any, turns: list[Turn], tools: list[Turn] | None, reading: Reading) -> None:
        self._tokenizer, self.turns, self._tools, self._reading = tokenizer, turns, tools, reading
        try:
            self.text = self._draw(turns)
        except Exception as wrong:  # a template is a program of the model's author: anything may go wrong
            raise TrainError(f"The model's chat template refuses a row: {wrong}") from wrong
        self._mark = next(char for char in map(chr, _PRIVATE_USE) if char not in self.text)

    def spans(self, trained: list[bool]) -> list[list[Span]]:
        """The assistant's words in each turn that is trained, its end included.

        Most turns have one span; a turn that the template leaves out has none.
        """
        answers = [index for index, turn in enumerate(self.turns) if turn["role"] == "assistant"]
        marked = self._marked()
        if marked is not None and len(marked) == len(answers) and all(trained[index] for index in answers):
            return [[span] for span in marked]
        found = [self._span(index) for index in answers if trained[index]]
        whole = [[span] if span else [] for span in found]
        return whole if marked is None else [_both(marked, spans) for spans in whole]

    def without_tools(self) -> str | None:
        return self._try(self.turns, tools=None)

    def same_without(self, index: int, *fields: str) -> bool:
        """Does the text stay as it is without these fields of a turn?"""
        turns = list(self.turns)
        turns[index] = {key: value for key, value in turns[index].items() if key not in fields}
        return self._try(turns) == self.text

    def leaves_out(self, index: int) -> bool:
        """Does the text stay as it is whatever a turn says?"""
        changed = {**self.turns[index], "content": self._mark}
        return self._try([*self.turns[:index], changed, *self.turns[index + 1 :]]) == self.text

    def keeps_only_the_end(self) -> bool:
        """Does the template cut the last turn's words, and leave only what they end with?"""
        around, content = self._around_last(), _squeezed(self.turns[-1]["content"])
        if around is None or not (self.text.startswith(around[0]) and self.text.endswith(around[1])):
            return False
        kept = _squeezed(self.text[len(around[0]) : len(self.text) - len(around[1])])
        return len(kept) < len(content) and content.endswith(kept)

    def cuts_at(self, end: str) -> bool:
        """Does the template leave out what stands before `end` in the last turn's words?"""
        cut = self._try([*self.turns[:-1], self._last(f"{self._mark}{end}answer")])
        return cut is not None and self._mark not in cut

    def last_with(self, content: str) -> tuple[str, Span] | None:
        """The text with these words of the last turn put in as they are, and their span.

        They go on from the prompt that the model is given: where it begins the thoughts itself
        (`<think>`), words that begin them again do not do so twice. None where the template does
        not tell where the words stand.
        """
        if (around := self._around_last()) is None:
            return None
        head, tail = around
        prompt = self._try(self.turns[:-1], add_generation_prompt=True) or ""
        opening = prompt[len(head) :] if prompt.startswith(head) else ""
        if tag := opening.strip():
            content = content.lstrip().removeprefix(tag).lstrip("\n")
        begin = len(head) + len(opening)
        text = head + opening + content + tail
        return text, (begin, len(text))

    def _around_last(self) -> tuple[str, str] | None:
        """What the template writes before and after the words of the last turn."""
        marked = self._try([*self.turns[:-1], self._last(self._mark)]) or ""
        head, found, tail = marked.partition(self._mark)
        return (head, tail) if found and self._mark not in tail else None

    def _last(self, content: str) -> Turn:
        kept = {key: value for key, value in self.turns[-1].items() if key not in REASONING}
        return {**kept, "content": content}

    def _marked(self) -> list[Span] | None:
        """Spans that the template itself marks as generated, if it marks any."""
        from transformers.utils.chat_template_utils import render_jinja_template

        template = self._tokenizer.get_chat_template(None, self._tools)
        if not _GENERATION.search(template):
            return None
        texts, spans = render_jinja_template(
            [self._reading.of(self.turns)],
            tools=self._tools,
            chat_template=template,
            return_assistant_tokens_mask=True,
            **self._tokenizer.special_tokens_map,
        )
        if texts[0] != self.text:
            return None
        joined: list[Span] = []
        for begin, end in spans[0]:
            if joined and begin <= joined[-1][1]:  # a turn in several pieces
                begin = joined.pop()[0]
            if begin < end:
                joined.append((begin, end))
        return joined

    def _span(self, index: int) -> Span | None:
        """The span from the end of the prompt that asks for a turn to its end.

        Most templates write a conversation's beginning alike whatever follows: then its renderings up to the
        turn and with it tell. Some write earlier turns in another way than the last ones (without their
        reasoning): then the turn is where the text changes when the turn does.
        """
        prompt_end = self._prompt_end(index)
        until_turn = self.text if index + 1 == len(self.turns) else self._try(self.turns[: index + 1])
        known_end = until_turn is not None and self.text.startswith(until_turn)
        if prompt_end is not None and until_turn is not None and known_end and prompt_end < len(until_turn):
            return prompt_end, len(until_turn)
        place = self._place(index)
        if place is None:
            return None
        if prompt_end is None and not index:
            prompt_end = self._opened(place[0])
        elif prompt_end is None and (earlier := self._place(index - 1)):
            prompt_end = self._beyond(index - 1, earlier[1], add_generation_prompt=True)
        begin = place[0] if prompt_end is None else min(prompt_end, place[0])
        end = len(until_turn) if until_turn is not None and known_end else self._beyond(index, place[1])
        return begin, end

    def _prompt_end(self, index: int) -> int | None:
        """Return where the prompt for a turn ends.

        None unless the text begins as the conversation before the turn does. The prompt may go
        on (`<think>`) where a turn without reasoning does not.
        """
        before = self._try(self.turns[:index], add_generation_prompt=True) if index else None
        if before is None or self.text.startswith(before):
            return None if before is None else len(before)
        bare = self._try(self.turns[:index])
        if bare is None or not self.text.startswith(bare):
            return None
        return max(len(bare), _shared(before, self.text))

    def _opened(self, end: int) -> int | None:
        """Where the prompt for a chat's first turn ends before `end`, if there is one."""
        prompt_end = self._try(self.turns, add_generation_prompt=True) or ""
        prompt = prompt_end[len(self.text) :] if prompt_end.startswith(self.text) else ""
        found = self.text.rfind(prompt, 0, end)
        return found + len(prompt) if prompt and found >= 0 else None

    def _place(self, index: int) -> Span | None:
        """Return where the text changes with a turn.

        None if it does not, or the template takes no other turn.
        """
        changed = self._try(self._changed(index))
        if changed is None or changed == self.text:
            return None
        begin = _shared(self.text, changed)
        most = min(len(self.text), len(changed)) - begin
        return begin, len(self.text) - min(most, _shared(self.text[::-1], changed[::-1]))

    def _beyond(self, index: int, end: int, **options: Any) -> int:
        """Return the end of a turn, extended by the text that ends a last turn.

        From the end of the turn's words it goes on to the end of the text that a conversation
        has after this turn when it is the last one.
        """
        ended = self._try(self.turns[: index + 1], **options)
        changed = self._try(self._changed(index)[: index + 1], **options)
        if ended is None or changed is None:
            return end
        tail = ended[len(ended) - _shared(ended[::-1], changed[::-1]) :]
        return end + _shared(tail, self.text[end:])

    def _changed(self, index: int) -> list[Turn]:
        """Return the turns with one of them reduced to a mark.

        The mark stands for its content, or for its calls.
        """
        turn = self.turns[index]
        said = {key: turn[key] for key in _KEPT if key in turn}
        said["content"] = self._mark if turn["content"] or "tool_calls" not in turn else ""
        if "tool_calls" in turn:
            called = {"function": {"name": self._mark, "arguments": {}}}
            said["tool_calls"] = [{**call, **called} for call in turn["tool_calls"]]
        return [*self.turns[:index], said, *self.turns[index + 1 :]]

    def _try(self, turns: list[Turn], **options: Any) -> str | None:
        """The rendered turns; None where the template refuses a part of a good chat."""
        try:
            return self._draw(turns, **options)
        except Exception:  # noqa: BLE001 - as above
            return None

    def _draw(self, turns: list[Turn], **options: Any) -> str:
        options = {"tools": self._tools, **options}
        turns = self._reading.of(turns)
        return self._tokenizer.apply_chat_template(turns, tokenize=False, **options)


def shows(text: str, part: str) -> bool:
    """Is a part in the text, white space aside?"""
    return part.strip() in text or _squeezed(part) in _squeezed(text)


def _squeezed(text: str) -> str:
    return "".join(text.split())


def _shared(one: str, other: str) -> int:
    """Length of the common beginning."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _both(ones: list[Span], others: list[Span]) -> list[Span]:
    """Entries within a span of each list."""
    pairs = ((max(a, c), min(b, d)) for a, b in ones for c, d in others)
    return [(begin, end) for begin, end in pairs if begin < end]
