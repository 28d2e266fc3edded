"""Chats as their model's template writes them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime
from itertools import product
from typing import Any

from trainer.formats import Chat
from trainer.train.data.spans import Drawn, Span, shows
from trainer.train.data.turns import Reading, turns_of
from trainer.train.errors import TrainError

_UNKNOWN = (
    "The model's chat template does not show it the {what} of the data. Choose a model whose template does"
    " (most instruction-tuned ones), or {remedy} in all rows."
)
_LEFT_OUT = (
    "The model's chat template leaves out what the {role} says in messages[{index}]. {remedy}, or choose a"
    " model whose template shows it."
)
_INSTRUCTING = {"developer": "system", "system": "developer"}  # roles that say what the assistant shall do
_THOUGHTS = re.compile(r"</[\w:]*(?:think|thought|reason)\w*>|\[/THINK\]", re.IGNORECASE)
_THOUGHTS_END = "</think>"
_A_PART = str({"type": "text"}).removesuffix("}")


class Template:
    """Renderer of chats.

    now: the date that a template takes for today, the same at each resume.
    rewritten: how many turns the template cut or changed.
    thoughtless: how many chats have an answer whose thoughts the template leaves out.
    unseen: how many answers the template leaves out whole.
    read_as: how many chats have a role that the template knows by another name.
    """

    def __init__(self, tokenizer: Any, now: datetime) -> None:
        self._tokenizer, self._source = tokenizer, str(tokenizer.chat_template)
        self._checked: set[str] = set()
        self._shown: set[tuple[str, bool]] = set()
        self._reading = Reading()
        self.rewritten = self.thoughtless = self.unseen = 0
        self.read_as: Counter[tuple[str, str]] = Counter()
        _stop_clock(tokenizer, now)

    def render(self, chat: Chat) -> tuple[str, list[list[Span]]]:
        """Return the text of a chat and the spans of each turn that is trained.

        Raises TrainError where the template refuses the chat, or leaves out parts that can only
        be meant to be seen: tools, their calls, instructions, the reasoning of the last turn.
        """
        drawn = self._drawn(chat)
        self._check(chat, drawn)
        trained = [bool(turn.weight) for turn in chat.messages]
        text, last = drawn.text, None
        if trained[-1] and (whole := self._thinking(chat, drawn)):
            text, last = whole
            trained[-1] = False
        turns = drawn.spans(trained)
        self._count(chat, text)
        self.unseen += sum(not spans for spans in turns)
        return text, [*(spans for spans in turns if spans), *([[last]] if last else [])]

    def _drawn(self, chat: Chat) -> Drawn:
        """The chat in the first reading that the template takes and shows, which is kept.

        Raises TrainError that says what is wrong with the first one.
        """
        refusals: list[TrainError] = []
        turns, tools = turns_of(chat), list(chat.tools) or None
        for reading in self._readings(chat):
            try:
                drawn = Drawn(self._tokenizer, turns, tools, reading)
            except TrainError as wrong:
                refusals.append(wrong)
                continue
            if reading.content_as_parts and _A_PART in drawn.text:  # printed as it is
                continue
            if (index := self._left_out(drawn)) is None:
                self._reading = reading
                used = {role: reading.roles[role] for role in _instructing(chat) if role in reading.roles}
                self.read_as.update(used.items())
                return drawn
            refusals.append(TrainError(_left_out(chat.messages[index].role, index)))
        raise refusals[0]

    def _readings(self, chat: Chat) -> Iterator[Reading]:
        """The settled reading, and those to try where the template does not take it.

        A template that knows no developer takes a system for it, and the other way round.
        """
        settled, roles = self._reading, [self._reading.roles]
        for role in _instructing(chat):
            others = {key: value for key, value in settled.roles.items() if key != role}
            if role in settled.roles:
                roles.append(others)
            elif _INSTRUCTING[role] in self._source:
                roles.append({**others, role: _INSTRUCTING[role]})
        has_calls = any(turn.calls for turn in chat.messages)
        ways = product(
            (settled.content_as_parts, not settled.content_as_parts),
            (settled.arguments_as_text, not settled.arguments_as_text)[: 1 + has_calls],
            roles,
        )
        for as_parts, as_text, names in ways:
            yield Reading(names, as_text, as_parts)

    def _left_out(self, drawn: Drawn) -> int | None:
        """The first turn of others than the assistant that the text does not show.

        The first of each kind is looked at whatever it says, later ones where their words are missing.
        """
        for index, turn in enumerate(drawn.turns):
            kind = turn["role"], index == 0
            if turn["role"] == "assistant" or not turn["content"].strip():
                continue
            if kind in self._shown and shows(drawn.text, turn["content"]):
                continue
            if drawn.leaves_out(index):
                return index
            self._shown.add(kind)
        return None

    def _check(self, chat: Chat, drawn: Drawn) -> None:
        """A template knows a field or not: the first chat that has it tells."""
        if chat.tools and self._first("tools") and drawn.text == drawn.without_tools():
            raise TrainError(_UNKNOWN.format(what="tools", remedy="remove tools and their calls"))
        for index, turn in enumerate(chat.messages):
            if turn.calls and self._first("calls") and drawn.same_without(index, "tool_calls"):
                raise TrainError(_UNKNOWN.format(what="tool calls", remedy="write them into the content"))

    def _first(self, what: str) -> bool:
        seen = what in self._checked
        self._checked.add(what)
        return not seen

    def _thinking(self, chat: Chat, drawn: Drawn) -> tuple[str, Span] | None:
        """The text with the thoughts of the last answer that the template leaves out.

        They are what the model shall say, after the prompt that it is given. None where the
        template shows them. Raises TrainError where it knows of no thoughts.
        """
        last = chat.messages[-1]
        if last.reasoning and not shows(drawn.text, last.reasoning):
            thought = f"<think>\n{last.reasoning}\n{_THOUGHTS_END}\n\n{last.content}"
            whole = drawn.last_with(thought) if drawn.cuts_at(_THOUGHTS_END) else None
            if whole is None:
                raise TrainError(_UNKNOWN.format(what="reasoning", remedy="write it into the content"))
            return whole
        if shows(drawn.text, last.content) or not drawn.keeps_only_the_end():
            return None
        return drawn.last_with(last.content)

    def _count(self, chat: Chat, text: str) -> None:
        """Count what the text does not show as the chat has it."""
        cut = False
        for turn in chat.messages:
            thoughts = not shows(text, turn.reasoning)
            if thoughts or not shows(text, turn.content):
                thoughts = thoughts or bool(_THOUGHTS.search(turn.content))
                cut |= thoughts
                self.rewritten += not thoughts
        self.thoughtless += cut


def _instructing(chat: Chat) -> list[str]:
    return list(dict.fromkeys(turn.role for turn in chat.messages if turn.role in _INSTRUCTING))


def _left_out(role: str, index: int) -> str:
    if role in _INSTRUCTING and index:
        remedy = "Write it into the first message or into the user's next one"
    elif role in _INSTRUCTING:
        remedy = "Write it into the user's first message"
    else:
        remedy = "Write it into another message"
    return _LEFT_OUT.format(role=role, index=index, remedy=remedy)


def _stop_clock(tokenizer: Any, now: datetime) -> None:
    """Fix the date that templates get from `strftime_now`.

    transformers lets no caller replace it by an argument.
    """
    from transformers.utils.chat_template_utils import _compile_jinja_template

    given = tokenizer.chat_template
    clock: Callable[[str], str] = now.strftime
    for template in given.values() if isinstance(given, dict) else [given]:
        try:
            _compile_jinja_template(template).environment.globals["strftime_now"] = clock
        except Exception as wrong:  # Jinja's own errors, and what its optimiser runs
            raise TrainError(f"The model's chat template cannot be read: {wrong}") from wrong
