"""Reading past executions and predictors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from django.db.models import Case, Count, Max, Q, QuerySet, Sum, When

from knowledge.catalogue.portal_catalogue import FOLDER, with_folders
from knowledge.core.data.measurement import FROM_LOG, OWN, Measurement
from knowledge.core.domain.catalogue import Catalogue
from knowledge.core.domain.option_json import read_option
from knowledge.core.domain.types import Config, Evidence, Interval, Option, Source
from knowledge.core.explain import evidence
from knowledge.core.recommend import duration
from knowledge.models import (
    CONFIG_COLUMNS,
    CatalogEntry,
    Execution,
    PredictorVersion,
    Promotion,
    Status,
    TrackRecord,
)

RECENT_STARTUPS = 500
RECENT_RUNS = 2000
EVIDENCE = (
    "tokens_per_second",
    "peak_memory_fraction",
    "status",
    "source",
)  # of a measured run
EVIDENCE_SHOWN = 5
EVIDENCE_SCANNED = 1000
EXPORT_PIECE = 1000


@dataclass(frozen=True, slots=True)
class KnowledgeState:
    """The state that predictions rest on: it changes exactly when they may change."""

    active: PredictorVersion | None
    last_own: int
    own_runs: tuple[int, int] = (0, 0)  # their number and the sum of their keys: one may be unlearnt

    @property
    def number(self) -> int | None:
        """The active predictor's number; None as long as none was trained."""
        return self.active.number if self.active else None


def active_predictor() -> PredictorVersion | None:
    """The promoted predictor, if one was ever trained."""
    return PredictorVersion.objects.filter(active=True).first()


def predictor_before(execution: int) -> PredictorVersion | None:
    """Return the last promoted version that did not learn from the execution.

    None if all versions did.
    """
    standing = promotions().filter(undone_at__isnull=True, version__last_execution__lt=execution).first()
    return standing.version if standing else None


def predictor_versions() -> QuerySet[PredictorVersion]:
    """All trained predictors, newest first."""
    return PredictorVersion.objects.order_by("-number")


def promotions() -> QuerySet[Promotion]:
    """Promotions, newest first."""
    return Promotion.objects.select_related("version", "by").order_by("-pk")


def rollback_target() -> PredictorVersion | None:
    """Return the version that answered before the active one was promoted.

    None if there was none.
    """
    standing = promotions().filter(undone_at__isnull=True)[:2]
    return standing[1].version if len(standing) == 2 else None


def state() -> KnowledgeState:
    """The active predictor and the own runs that correct it."""
    own = _own_runs().aggregate(last=Max("pk"), runs=Count("pk"), keys=Sum("pk"))
    return KnowledgeState(active_predictor(), own["last"] or 0, (own["runs"], own["keys"] or 0))


def executions(
    *, model: str | None = None, gpu_model: str | None = None, source: str | None = None
) -> QuerySet[Execution]:
    """Executions, newest first, filtered by what is given."""
    given = {"model_name": model, "gpu_model": gpu_model, "source": source}
    filters = {name: value for name, value in given.items() if value is not None}
    return Execution.objects.filter(**filters).order_by("-pk")


def executions_matching(*, text: str, source: str, learnt: str) -> QuerySet[Execution]:
    """Return executions whose model name contains the text, newest first.

    learnt: `yes`, `no`, or empty for both.
    """
    rows = executions(source=source or None)
    if text:
        rows = rows.filter(model_name__icontains=text)
    return rows.filter(learn=learnt == "yes") if learnt else rows


def exported(*, own: bool = False, paths: bool = False) -> Iterator[Measurement]:
    """Yield executions as rows, oldest first and read a piece at a time.

    own: only those that were measured here.
    paths: name models in folders by their whole path, which reveals how this machine's disk is laid
    out.
    """
    rows = Execution.objects.order_by("pk")
    return _rows(rows.filter(row_digest__isnull=True) if own else rows, paths=paths)


def exported_under_other_digests() -> Iterator[Measurement]:
    """Yield the exported rows that an import would not recognise by their own digest."""
    rows = Execution.objects.filter(Q(row_digest__isnull=True) | Q(model_name__startswith=FOLDER))
    return _rows(rows.order_by("pk"), paths=False)


def _rows(executions: QuerySet[Execution], *, paths: bool) -> Iterator[Measurement]:
    found = (execution.row for execution in executions.iterator(chunk_size=EXPORT_PIECE))
    return found if paths else map(_without_path, found)


def _without_path(row: Measurement) -> Measurement:
    """Return the row with its model folder's name alone, without the path.

    The slash before the name stays, or it could pass for a model of the catalogue.
    """
    name = row.config.model_name
    if not name.startswith(FOLDER):
        return row
    return replace(row, config=replace(row.config, model_name=FOLDER + PurePosixPath(name).name))


def learnable() -> QuerySet[Execution]:
    """Rows that predictors learn from, oldest first."""
    return Execution.objects.filter(learn=True).exclude(status=Status.REFUSED).order_by("pk")


def own_measurements() -> QuerySet[Execution]:
    """Own successful runs with a rate, oldest first."""
    rows = Execution.objects.filter(source=OWN, learn=True, status=Status.OK, tokens_per_second__isnull=False)
    return rows.order_by("pk")


def own_runs(*, up_to: int) -> list[Execution]:
    """The newest own runs that tell whether and how fast something runs, oldest first."""
    return list(_own_runs(pk__lte=up_to))[::-1]


def _own_runs(**filters: int) -> QuerySet[Execution]:
    rows = Execution.objects.filter(source=OWN, learn=True, status__in=(Status.OK, Status.OOM), **filters)
    return rows.order_by("-pk")[:RECENT_RUNS]


def executions_of_logs() -> QuerySet[Execution]:
    """The executions that logs of runs elsewhere left."""
    return Execution.objects.filter(source=FROM_LOG)


def execution_of_log(execution: int) -> Execution | None:
    """One of them, or None."""
    return executions_of_logs().filter(pk=execution).first()


def latest_predictor() -> PredictorVersion | None:
    """The version that was trained last, promoted or not."""
    return PredictorVersion.objects.order_by("-number").first()


def new_rows_since(version: PredictorVersion | None) -> int:
    """Learnable rows that the version has not seen."""
    return learnable().filter(pk__gt=version.last_execution if version else 0).count()


def startups(catalogue: Catalogue) -> dict[tuple[str, int], Interval]:
    """Start-up seconds of own runs, by GPU model and size class of the model."""
    rows = Execution.objects.filter(source=OWN, startup_s__isnull=False).order_by("-pk")
    recent = list(rows.values_list("gpu_model", "model_name", "startup_s")[:RECENT_STARTUPS])
    catalogue = with_folders(catalogue, (name for _, name, _ in recent))
    measured: dict[tuple[str, int], list[float]] = {}
    for gpu_model, name, seconds in recent:
        if model := catalogue.known_model(name):
            kind = (gpu_model, duration.size_class(model))
            measured.setdefault(kind, []).append(float(seconds or 0.0))
    return {kind: duration.startup_of(values) for kind, values in measured.items()}


def evidence_rows(model_names: Sequence[str], config: Config) -> QuerySet[Execution]:
    """Return executions of the models by the configuration's tuning.

    They are ranked by nearness later. Runs of the configuration's own model come first, then those
    on its GPU model, the newest of each first: a large history must not hide them from a reader of
    the first thousand rows.
    """
    elsewhere = Case(When(model_name=config.model_name, then=0), default=1)
    otherwise = Case(When(gpu_model=config.gpu_model, then=0), default=1)
    rows = Execution.objects.filter(model_name__in=model_names, tuning=config.tuning)
    return rows.exclude(status=Status.REFUSED).order_by(elsewhere, otherwise, "-pk")


def nearest(config: Config, catalogue: Catalogue) -> tuple[Evidence, ...]:
    """The measured executions most like the configuration, nearest first."""
    config = catalogue.canonical(config)
    rows = evidence_rows(evidence.related_models(config.model_name, catalogue), config)
    rows = rows.only(*CONFIG_COLUMNS, "settings", *EVIDENCE)
    configs = [(row, row.config) for row in rows[:EVIDENCE_SCANNED]]
    found = [(evidence.distance(config, known), known, row) for row, known in configs]
    found.sort(key=lambda one: one[0])
    return tuple(
        Evidence(config=known, distance=distance, **{name: getattr(row, name) for name in EVIDENCE})
        for distance, known, row in found[:EVIDENCE_SHOWN]
    )


def counts_by_source() -> dict[str, int]:
    """How many executions each source contributed."""
    return {
        row["source"]: row["rows"]
        for row in Execution.objects.values("source").annotate(rows=Count("pk")).order_by("source")
    }


def promises(*, limit: int) -> list[tuple[Option, float]]:
    """Return (promise, measured tokens/s) of the newest own runs, oldest first.

    Only runs that were predicted count.
    """
    rows = own_measurements().filter(predicted__isnull=False)
    rows = rows.exclude(predicted__source=Source.DEFAULT.value).order_by("-pk")
    pairs = rows.values_list("predicted", "tokens_per_second")[:limit]
    return [(read_option(promise), float(rate or 0.0)) for promise, rate in pairs if promise][::-1]


def rate_errors(*, limit: int) -> list[float]:
    """Return relative errors of the throughput promised to the newest own runs.

    At most `limit` runs are considered.
    """
    newest = own_measurements().order_by("-pk").values_list("predicted", "tokens_per_second")[:limit]
    return [
        abs(read_option(promise).tokens_per_second.value / measured - 1)
        for promise, measured in newest
        if measured and promise
    ]


def track_record(*, days: int = 90) -> list[TrackRecord]:
    """Coverage and error day by day, oldest first."""
    return list(TrackRecord.objects.order_by("-day")[:days])[::-1]


def drift_alarm() -> str:
    """Figures that have drifted by the latest judgement; empty if none has."""
    return TrackRecord.objects.order_by("-day").values_list("alarm", flat=True).first() or ""


def catalog_entries() -> QuerySet[CatalogEntry]:
    """Entries that administrators added to the catalogue, by kind and name."""
    return CatalogEntry.objects.order_by("kind", "name")


def catalog_entry(pk: str) -> CatalogEntry:
    """The addition that has this primary key."""
    return CatalogEntry.objects.get(pk=pk)


def execution_counts(entries: Sequence[CatalogEntry]) -> dict[tuple[str, str], int]:
    """Return how many executions that are learnt from name each entry.

    The keys are (kind, name); entries that no execution names are left out.
    """
    found: dict[tuple[str, str], int] = {}
    for kind, column in ((CatalogEntry.Kind.MODEL, "model_name"), (CatalogEntry.Kind.GPU, "gpu_model")):
        names = [entry.name for entry in entries if entry.kind == kind]
        rows = learnable().filter(**{f"{column}__in": names}).order_by()
        counted = rows.values_list(column).annotate(Count("pk"))
        found |= {(kind.value, name): number for name, number in counted}
    return found
