"""What a person may ask of a job: the one table of its terms.

Requests, answers and changes over REST, the forms, *Repeat*, questions about starts, traces, the audit record
and docs/api.md follow from it. Settings of the training itself are in the recipe (trainer/recipes/).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from knowledge.core.domain.types import Goal
from knowledge.core.domain.wording import rough_time
from scheduler.core.placement.levels import TopologyLevel
from scheduler.core.types import Topology
from scheduler.states import PriorityClass
from trainer.recipes import DEFAULT_RECIPE, RECIPES

MAX_BUDGET = 10**12
MOST_RUN_S = 366 * 86_400
MOST_EARLIER = 100  # jobs and arrays that one job may come after
MOST_PAIRS, LONGEST_KEY, LONGEST_VALUE = 16, 64, 512

JobRequest = Mapping[str, Any]  # a person's request: values by the names of the table


class Kind(StrEnum):
    """The type of a term; each interface has one field for each type."""

    TEXT = "text"
    NAME = "name"
    FILE = "file"  # over REST its id
    TEAM = "team"  # over REST its name
    PARAMS = "parameters"  # of the recipe, by name
    EARLIER = "jobs"  # and arrays
    WORD = "word"
    RANK = "rank"  # a word over REST, stored as its number
    FLAG = "true or false"
    YES_NO = "yes or no"  # a word over REST; what is left open follows from other terms
    MOMENT = "moment"
    MONEY = "amount"
    COUNT = "whole number"
    SECONDS = "seconds"  # hours in forms
    PAIRS = "text pairs"


class Change(StrEnum):
    """The time until which a job's owner may change a term."""

    NEVER = ""
    WHILE_IT_WAITS = "while it waits or is paused"
    UNTIL_IT_ENDS = "until it ends"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobTerm:
    """One thing that a person may ask of a job.

    default: of a request that leaves it out. label, hint: on pages; help: for programs and docs.
    choices: by word, the text on pages. scale: the numbers behind the words of a rank.
    limited: how much not everybody may ask for. folded: is it under *More* in the form?
    stored: the job's column, if it has another name. trace: the column of a trace, if it has one.
    seen: the field of `JobInfo`, which policies and kept decisions have, where it holds the same.
    renews: has a changed value to be recommended anew? plays: can it move when a job starts?
    changed, gone: the sentence about a new value, and about none any more.
    """

    name: str
    kind: Kind
    label: str
    help: str
    hint: str = ""
    default: Any = None
    required: bool = False
    low: int | None = None
    high: int | None = None
    choices: Mapping[str, str] = field(default_factory=dict)
    scale: type[PriorityClass] | type[TopologyLevel] | None = None
    limited: str = ""
    change: Change = Change.NEVER
    renews: bool = False
    plays: bool = True
    folded: bool = True
    stored: str = ""
    trace: str = ""
    seen: str = ""
    changed: str = ""
    gone: str = ""

    @property
    def column(self) -> str:
        return self.stored or self.name

    @property
    def is_open(self) -> bool:
        """Is there anything to choose? A form does not ask where one word is all."""
        return len(self.choices) != 1

    @property
    def is_nullable(self) -> bool:
        """May a request say null for none?"""
        return self.default is None and not self.required and self.kind is not Kind.YES_NO

    def problem(self, value: Any) -> str | None:
        """Why this value is none, for its owner; None: it is one."""
        if value is None and self.default is None:
            return None
        if self.kind is Kind.WORD and value not in self.choices:
            return f"must be one of {', '.join(self.choices)}"
        if self.kind is Kind.PAIRS:
            return _wrong_pairs(value)
        if self.low is None or self.high is None:
            return None
        above = value > self.low if self.kind is Kind.MONEY else value >= self.low
        return None if above and value <= self.high else self.range

    @property
    def range(self) -> str:
        """The bounds of its numbers, as an error says them."""
        if self.kind is Kind.MONEY:
            return f"must be an amount above {self.low:,}, at most {self.high:,}"
        unit = " seconds" if self.kind is Kind.SECONDS else ""
        return f"must be between {self.low:,} and {self.high:,}{unit}"

    def of(self, job: Any) -> Any:
        """The job's own value: of a file its id, of a team its name."""
        if self.kind is Kind.FILE:
            return getattr(job, f"{self.name}_id")
        if self.kind is Kind.TEAM:
            return job.team and job.team.name
        return getattr(job, self.column)

    def word(self, value: Any) -> Any:
        """The value over REST; only rows are others there."""
        if self.scale is not None and value is not None:
            return self.scale(value).word
        if self.kind is Kind.YES_NO and value is not None:
            return "yes" if value else "no"
        return value

    def value(self, word: str) -> PriorityClass | TopologyLevel:
        """The number behind a rank's word. Raises KeyError."""
        return {one.word: one for one in self.scale or ()}[word]

    def sentence(self, value: Any) -> str:
        """What a change to this value means, for the job's owner."""
        if value is None and self.gone:
            return self.gone
        told = rough_time(value) if self.kind is Kind.SECONDS and value is not None else self.word(value)
        if self.kind in (Kind.FLAG, Kind.YES_NO):
            told = "may" if value else "may not"
        return (self.changed or f"Its {self.label.lower()} was changed.").format(told)


def _wrong_pairs(pairs: Any) -> str | None:
    """Why this is no set of pairs, naming the first key that is wrong."""
    if not isinstance(pairs, Mapping):
        return "must be an object of texts"
    if len(pairs) > MOST_PAIRS:
        return f"may hold {MOST_PAIRS} pairs at most, and these are {len(pairs)}"
    for key, value in pairs.items():
        if not key:
            return "needs a key before each value"
        if len(key) > LONGEST_KEY:
            return (
                f"{key[:LONGEST_KEY]}…: a key may have {LONGEST_KEY} characters, and this one has {len(key)}"
            )
        if not isinstance(value, str):
            return f"{key}: must be a text; put it in quotes"
        if len(value) > LONGEST_VALUE:
            return f"{key}: may have {LONGEST_VALUE} characters, and this value has {len(value)}"
    return None


GOALS = {
    Goal.BALANCED: "Balanced between time and cost",
    Goal.FASTEST: "Fastest",
    Goal.CHEAPEST: "Cheapest",
    Goal.DEADLINE: "Cheapest that meets a deadline",
    Goal.BUDGET: "Fastest within a budget",
}
CLOSENESS = {
    Topology.AUTOMATIC: "automatic",
    Topology.NONE: "not needed",
    Topology.BEST_EFFORT: "if possible",
    Topology.GUARANTEED: "required",
}
CLASSES = {one.word: one.word for one in PriorityClass}
LEVELS = {one.word: f"one {one.phrase}" for one in sorted(TopologyLevel, reverse=True)}
_WAITS, _LIVES = Change.WHILE_IT_WAITS, Change.UNTIL_IT_ENDS

_TERMS = (
    JobTerm(
        name="model",
        kind=Kind.TEXT,
        label="Base model",
        help="A base model of the catalogue, e.g. builtin/tiny-llama.",
        hint="One of the list, the id of a model on the Hugging Face Hub, or a folder that the administrators"
        " allow.",
        required=True,
        high=300,
        folded=False,
        trace="model",
    ),
    JobTerm(
        name="training_file",
        kind=Kind.FILE,
        label="Training data",
        help="Id of an uploaded file.",
        required=True,
        folded=False,
    ),
    JobTerm(
        name="recipe",
        kind=Kind.WORD,
        label="Recipe",
        help="How the model learns from the data: "
        + "; ".join(f"`{r.name}` {r.help}" for r in RECIPES.values()),
        default=DEFAULT_RECIPE.name,
        choices={recipe.name: recipe.label for recipe in RECIPES.values()},
        trace="recipe",
    ),
    JobTerm(
        name="goal",
        kind=Kind.WORD,
        label="Goal",
        help="The goal: `deadline` is the cheapest option that ends by deadline_at, `budget` the fastest"
        " within budget. The two limits come first with every goal.",
        default=Goal.BALANCED.value,
        choices={goal.value: text for goal, text in GOALS.items()},
        change=_WAITS,
        renews=True,
        folded=False,
        trace="goal",
        seen="goal",
        changed="Its goal is {} now.",
    ),
    JobTerm(
        name="params",
        kind=Kind.PARAMS,
        label="Fixed values",
        help="Fixed parameters; the recommendation fills in the others. Those that change what is learnt can"
        " be changed only before the first attempt; null leaves one to the recommendation again.",
        default={},
        change=_WAITS,
        renews=True,
        folded=False,
        stored="fixed",
    ),
    JobTerm(
        name="name",
        kind=Kind.NAME,
        label="Name",
        help="It makes the job easy to find.",
        hint="Optional; makes the job easy to find.",
        default="",
        high=200,
        plays=False,
        folded=False,
    ),
    JobTerm(name="validation_file", kind=Kind.FILE, label="Validation data", help="Id of an uploaded file."),
    JobTerm(
        name="deadline_at",
        kind=Kind.MOMENT,
        label="Deadline",
        help="Required for the goal deadline; within ten years.",
        change=_WAITS,
        renews=True,
        trace="deadline_s",
        seen="due_at",
        gone="It has no deadline any more.",
    ),
    JobTerm(
        name="budget",
        kind=Kind.MONEY,
        label="Budget",
        help="In the currency of node prices; required for the goal budget.",
        low=0,
        high=MAX_BUDGET,
        seen="budget",
        change=_WAITS,
        renews=True,
        gone="It has no budget any more.",
    ),
    JobTerm(
        name="begin_at",
        kind=Kind.MOMENT,
        label="Not before",
        help="The job does not start before; within a year from now. One that is past: at once.",
        hint="The job does not start before this time.",
        trace="begin_s",
        seen="begins_at",
    ),
    JobTerm(
        name="after",
        kind=Kind.EARLIER,
        label="After these jobs",
        help="Jobs, and whole arrays, that must end before this one may start.",
        hint="The job starts once they have ended; of an array, once all its jobs have.",
        default=(),
        high=MOST_EARLIER,
    ),
    JobTerm(
        name="retries",
        kind=Kind.COUNT,
        label="Retries",
        help="How often to retry after an error in data or code; 0 is usual.",
        default=0,
        low=0,
        high=10,
    ),
    JobTerm(
        name="team",
        kind=Kind.TEAM,
        label="Team",
        help="Name or id of one of your teams, as `me/` lists them; its members see the job.",
        hint="Its members see the job, and the cost counts towards the team.",
        high=100,
        limited="teams of the person",
    ),
    JobTerm(
        name="priority",
        kind=Kind.RANK,
        label="Priority class",
        help="Its class: higher ones go first, and may stop lower ones where the policy stops jobs.",
        hint="Higher ones go first.",
        default=PriorityClass.NORMAL,
        choices=CLASSES,
        scale=PriorityClass,
        limited="up to normal, or what an administrator allows the person",
        change=_LIVES,
        trace="priority",
        changed="Its class is {} now.",
    ),
    JobTerm(
        name="preemptible",
        kind=Kind.FLAG,
        label="May be stopped for other jobs",
        help="May it be stopped for other jobs? If not, it borrows no GPUs of other teams.",
        hint="A job that is never stopped uses no GPUs that are guaranteed to other teams.",
        default=True,
        choices={"true": "yes", "false": "no"},
        change=_LIVES,
        trace="preemptible",
        seen="borrows",
        changed="It {} be stopped for other jobs now.",
    ),
    JobTerm(
        name="max_run_s",
        kind=Kind.SECONDS,
        label="Time limit",
        help="The longest that it may run, in seconds, all its attempts together; it then ends as failed,"
        " with its last checkpoint kept. Unless said, what the owner's jobs may.",
        hint="Of running; the job is then saved and ends as failed. Empty: what your jobs may.",
        low=1,
        high=MOST_RUN_S,
        limited="what an administrator allows the person's jobs",
        change=_LIVES,
        trace="max_run_s",
        changed="It may run for {} now.",
        gone="It may run for any time now.",
    ),
    JobTerm(
        name="spot",
        kind=Kind.YES_NO,
        label="May use spot nodes",
        help="May it use spot nodes, which can be withdrawn at any time? Unless said, `yes` if it has a"
        " deadline. Refused for jobs whose checkpoints are too large to be kept at the portal.",
        hint="They are cheaper and can be withdrawn; the job then goes on elsewhere, from its last"
        " checkpoint.",
        choices={"": "yes, if there is a deadline", "yes": "yes", "no": "no"},
        seen="spot",
        change=_WAITS,
        renews=True,
        changed="It {} use spot nodes now.",
    ),
    JobTerm(
        name="topology",
        kind=Kind.WORD,
        label="GPUs close together",
        help="Whether its GPUs shall lie close together; `automatic` where the job gains from it.",
        hint="Automatic: as close as is predicted to make the job faster, where that is possible.",
        default=Topology.AUTOMATIC.value,
        choices={one.value: text for one, text in CLOSENESS.items()},
        change=_LIVES,
        trace="topology",
        seen="topology",
        changed="How close its GPUs shall lie was changed, for its next start.",
    ),
    JobTerm(
        name="topology_level",
        kind=Kind.RANK,
        label="How close",
        help="How close, with `best_effort` and `guaranteed`: what they share on a node.",
        hint="What they share; only with “if possible” or “required”.",
        choices=LEVELS,
        scale=TopologyLevel,
        change=_LIVES,
        trace="topology_level",
        seen="level",
        changed="How close its GPUs shall lie was changed, for its next start.",
        gone="How close its GPUs shall lie was changed, for its next start.",
    ),
    JobTerm(
        name="metadata",
        kind=Kind.PAIRS,
        label="Metadata",
        help="Texts of your own by key, kept with the job: 16 pairs at most, keys of up to 64 characters,"
        " values of up to 512.",
        hint="Of your own, such as project = summaries: one on each line, 16 at most.",
        default={},
        change=_LIVES,
        plays=False,
    ),
)
JOB_TERMS: dict[str, JobTerm] = {term.name: term for term in _TERMS}
ON_THE_ROW = {name: term for name, term in JOB_TERMS.items() if term.kind not in (Kind.PARAMS, Kind.EARLIER)}
_READ: dict[str, Callable[[Any], Any]] = {"goal": Goal, "topology": Topology}
_SEEN = [
    (term.seen, term.column, datetime.timestamp if term.kind is Kind.MOMENT else _READ.get(term.name))
    for term in _TERMS
    if term.seen
]
CHANGEABLE = {term.name: term for term in _TERMS if term.change}


def with_defaults(request: JobRequest) -> dict[str, Any]:
    """A request with all terms.

    Raises TypeError for others, which no interface lets in.
    """
    if others := request.keys() - JOB_TERMS.keys():
        raise TypeError(f"{', '.join(sorted(others))}: no term of a job")
    return {**{name: term.default for name, term in JOB_TERMS.items()}, **request}


def wants_spot(request: JobRequest) -> bool:
    """May the job use spot nodes? Unless it says so, it may if it has a deadline."""
    spot, deadline_at = request.get("spot"), request.get("deadline_at")
    return deadline_at is not None if spot is None else bool(spot)


def problems(values: Mapping[str, Any]) -> dict[str, str]:
    """Why values are none that any job could have, by the names of their terms."""
    found = {name: JOB_TERMS[name].problem(value) for name, value in values.items() if name in JOB_TERMS}
    return {name: problem for name, problem in found.items() if problem}


def seen_terms(job: Any) -> dict[str, Any]:
    """What was asked of a job, by the fields of `JobInfo`.

    Moments are in s; what is left open is left out.
    """
    found = {}
    for seen, column, read in _SEEN:
        value = getattr(job, column)
        if value is not None:
            found[seen] = read(value) if read else value
    return found
