"""The data of a training, tokenised once on each node before the first step."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from trainer import checkpoint
from trainer.formats import Chat, FormatError, Unused, rows
from trainer.protocol import ReportKind
from trainer.train.data.batches import Sample
from trainer.train.data.render import Renderer
from trainer.train.data.stops import Stops, plain_template
from trainer.train.data.store import Tokens, Writer, adopt
from trainer.train.data.template import Template
from trainer.train.data.tokenise import Counts, Tokeniser
from trainer.train.distributed.process_group import World
from trainer.train.errors import Stopped, TrainError
from trainer.train.events import Journal
from trainer.train.memory import peak_bytes
from trainer.train.settings import TrainingSpec

VERSION = 2  # of codes; tokens of another one are made anew
SLICE_S = 5.0
REPORT_EVERY_S = 10.0
_NO_TEMPLATE = (
    "the model has no chat template: chats are written as lines of role and content, each answer ended; the"
    " result holds the template that does so"
)


@dataclass(frozen=True, slots=True)
class Data:
    """The data of a training, and notes for a checkpoint.

    The notes are a digest of the tokens, and the moment that chat templates took for now.
    ends: see Header. told: what people should know of the data, a sentence each.
    """

    train: Tokens
    validation: Sequence[Sample]
    identity: dict[str, Any]
    ends: tuple[int, ...]
    told: tuple[str, ...]


def prepare(
    order: TrainingSpec,
    world: World,
    tokenizer: Any,
    journal: Journal,
    stopped: Callable[[], bool],
    earlier: dict[str, Any],
    generation: Any = None,
    embedded: int = 2**31,
) -> Data:
    """Return the data of a training; every process must call.

    tokenizer: gets a chat template if it has none and rows are chats, so that the one that was
    used goes out with the result.
    generation: the model's generation configuration, which names tokens that end what it says.
    embedded: tokens that the model has an embedding for.
    earlier: the identity in the checkpoint that is resumed; its moment holds on, so that a
    template that prints the date makes the same tokens tomorrow.
    Raises TrainError for a bad row or where no row has anything to learn, Stopped, and OSError.
    """
    named = {name: path for name in ("train", "validation") if (path := order.input(f"{name}.jsonl"))}
    if "train" not in named:
        raise TrainError("inputs/train.jsonl is missing in the run directory.")
    now = datetime.fromtimestamp(float(earlier.get("now") or world.max(time.time())[0]), UTC)
    stops: Stops = world.from_main(Stops.of(tokenizer, generation))  # of a shared model, rank 0 alone read it
    told: list[str] = []
    if not tokenizer.chat_template and any(map(_holds_chats, named.values())):
        tokenizer.chat_template = plain_template(tokenizer, stops)
        told.append(_NO_TEMPLATE)
    work = _Work(order, tokenizer, stops, now, journal, embedded)
    _once_a_node(world, work.tokenise(named), journal, stopped)
    train, *others = (Tokens(work.folder, name) for name in named)
    told += [note for tokens in (train, *others) for note in tokens.header.notes]
    for note in told:
        journal.say(note)
    identity = {"tokens": train.header.digest, "now": now.timestamp()}
    return Data(train, others[0] if others else [], identity, train.header.ends, tuple(told))


def _holds_chats(path: Path) -> bool:
    """Does a file hold chats? The first row tells: a file has one format."""
    try:
        return isinstance(next(rows(path)), Chat)
    except FormatError:
        return False  # told with all its bad rows, once they are read


def _once_a_node(world: World, work: Iterator[None], journal: Journal, stopped: Callable[[], bool]) -> None:
    """Do the work in the first process of each node.

    All processes meet every few seconds: a process that waits for long in one collective is
    ended by its time limit, and a stop must be obeyed by all at once.
    """
    busy = world.first_here
    while world.any(busy := busy and _goes_on(work)):
        journal.alive(peak_bytes(world.device))  # of a node that is done and waits for another
        if world.any(stopped()):
            raise Stopped


def _goes_on(work: Iterator[None]) -> bool:
    """Work for a while. Is there more to do?"""
    until = time.monotonic() + SLICE_S
    return any(time.monotonic() > until for _ in work)


class _Work:
    """Prepare the data as the first process of a node."""

    def __init__(
        self,
        order: TrainingSpec,
        tokenizer: Any,
        stops: Stops,
        now: datetime,
        journal: Journal,
        embedded: int,
    ) -> None:
        self._order, self._tokenizer, self._stops = order, tokenizer, stops
        self._now, self._journal, self._embedded = now, journal, embedded
        self._longest = order.settings.tokens_per_sample
        self._rows, self._reported_at = 0, time.monotonic()
        self.folder = order.run_dir / "tokens"

    def tokenise(self, named: dict[str, Path]) -> Iterator[None]:
        """The tokens of all files into `folder`, yielding after each batch."""
        for name, path in named.items():
            yield from self._tokenise(name, path)

    def _tokenise(self, name: str, path: Path) -> Iterator[None]:
        key = self._key(path)
        if self._order.tokens_dir and adopt(self._order.tokens_dir, self.folder, name, key):
            self._journal.say(f"the tokens of {path.name} are there from an earlier attempt")
            return
        renderer, unused = Renderer(self._tokenizer, self._now), Unused()
        tokeniser = Tokeniser(self._tokenizer, renderer, self._stops, self._longest, self._embedded)
        writer = Writer(self.folder, name)
        try:
            for batch in tokeniser.batches(rows(path, unused)):
                writer.add(batch)
                self._report(path.name, len(batch), writer)
                yield
        except (FormatError, TrainError) as wrong:
            raise TrainError(f"{path.name} cannot be used: {wrong}") from wrong
        notes = [*self._notes(path.name, writer, renderer, unused), *self._told(path.name, tokeniser.counts)]
        writer.close(key, notes, tokeniser.counts.learnt_ends(self._stops))

    def _report(self, name: str, more: int, writer: Writer) -> None:
        """The portal gives a start that goes on more time; a silent one is given up."""
        self._rows += more
        if time.monotonic() - self._reported_at > REPORT_EVERY_S:
            self._reported_at = time.monotonic()
            self._journal.say(f"tokenising {name}: {writer.rows:,} rows, {writer.tokens:,} tokens so far")
            self._journal.event(ReportKind.PREPARE, rows=self._rows)

    def _notes(self, name: str, writer: Writer, renderer: Renderer, unused: Unused) -> Iterator[str]:
        if writer.barren == writer.rows:
            raise TrainError(
                f"No row of {name} has anything to learn within {self._longest} tokens: the completions begin"
                " later. Raise tokens_per_sample or shorten the prompts."
            )
        if unused.names:
            yield f"fields of {name} that are not used: {', '.join(unused.names)}"
        if renderer.template:
            yield from template_notes(renderer.template, name)
        if writer.barren:
            counts = f"{writer.barren} of {writer.rows} rows of {name}"
            yield f"{counts} have no completion within {self._longest} tokens"

    def _told(self, name: str, counts: Counts) -> Iterator[str]:
        if counts.cut:
            yield (
                f"{counted(counts.cut, 'row')} of {name} had more than {self._longest:,} tokens and"
                f" {'was' if counts.cut == 1 else 'were'} cut, which lost"
                f" {counts.cut_tokens / counts.tokens:.1%} of all tokens"
            )
        for token, turns in sorted(counts.given.items()):
            text = self._tokenizer.convert_ids_to_tokens(token)
            verb = "was" if turns == 1 else "were"
            yield f"{counted(turns, 'turn')} of {name} {verb} given an end ({text})"
        if counts.endless:
            turns_within = counted(counts.endless, "turn")
            yield f"{turns_within} of {name} within chats end in no token that stops a model"
        if ends := counts.learnt_ends(self._stops):
            texts = ", ".join(self._tokenizer.convert_ids_to_tokens(list(ends)))
            yield f"what is learnt ends in {texts}; the result names it as a stop"

    def _key(self, path: Path) -> str:
        """Names all that the tokens depend on."""
        given = [file.sha256 for file in self._order.spec.inputs if file.path == path.name]
        parts = {
            "version": VERSION,
            "rows": given[0] if given else checkpoint.digest(path),
            "longest": self._longest,
            "tokenizer": self._tokenizer.backend_tokenizer.to_str(),
            "template": self._tokenizer.chat_template,
            "special": self._tokenizer.special_tokens_map,
            "stops": sorted(self._stops.known),
            "now": self._now.timestamp(),
        }
        return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()


def template_notes(template: Template, name: str) -> Iterator[str]:
    """What the chat template made of the rows of a file, in sentences for its owner."""
    for (role, other), chats in sorted(template.read_as.items()):
        yield f"the chat template knows no {role}: in {counted(chats, 'row')} of {name} it is read as {other}"
    if template.thoughtless:
        yield (
            f"the chat template leaves out the thoughts of earlier answers in"
            f" {counted(template.thoughtless, 'row')} of {name}, as it does when the model is used; to have"
            " them learnt, end a row of its own with each of these answers"
        )
    if template.unseen:
        answers = counted(template.unseen, "answer")
        yield f"not learnt, since the chat template leaves them out: {answers} of {name}"
    if template.rewritten:
        yield f"the chat template cuts or changes {counted(template.rewritten, 'turn')} of {name}"


def counted(number: int, what: str) -> str:
    """A number with its noun, such as `1 row` and `1,000 rows`."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"
