"""The step metrics.

The trainer reports them of every step, and the portal keeps and draws them. Standard library only; both
sides use it. The journal and metrics.csv, the reading of reports, the rows, REST, the charts and a table
of docs/training.md follow from `STEP_METRICS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType


class Over(StrEnum):
    """The value that stands for several steps in one report."""

    LAST = "last"
    MEAN = "mean"


class Caption(StrEnum):
    """The caption of a chart."""

    SPREAD = "spread"  # the median, the lowest and the highest value
    LOWEST = "lowest"  # the first, the last and the lowest value
    HIGHEST = "highest"  # the first, the last and the highest value


@dataclass(frozen=True, slots=True, kw_only=True)
class StepMetric:
    """One figure of a step.

    Agents may leave any out, and a portal ignores those that it does not know.

    name: in reports and metrics.csv. chart: in which it is drawn; those of one chart share its axes, and the
    first one's caption. low: the smallest value that is believed. column: of a row's own column and of the
    field in REST; without one it is kept in the row's JSON and has its name over REST.
    """

    name: str
    label: str
    help: str
    unit: str = ""
    chart: str = ""
    caption: Caption = Caption.SPREAD
    digits: str = ".3g"
    low: float = 0.0
    whole: bool = False
    over: Over = Over.LAST
    evaluation: bool = False  # it comes with the report of an evaluation, not of a step
    column: str = ""

    @property
    def public_name(self) -> str:
        """The metric's name in the portal and over REST."""
        return self.column or self.name


ANY_SIGN = -1e9

STEP_METRICS = (
    StepMetric(
        name="loss",
        label="training loss",
        help="mean over the trained tokens of the effective batch",
        chart="loss",
        caption=Caption.LOWEST,
        digits=".3f",
        low=ANY_SIGN,
        over=Over.MEAN,
        column="loss",
    ),
    StepMetric(
        name="eval_loss",
        label="evaluation loss",
        help="mean over the trained tokens of the validation file",
        chart="loss",
        digits=".3f",
        low=ANY_SIGN,
        evaluation=True,
        column="eval_loss",
    ),
    StepMetric(
        name="learning_rate",
        label="learning rate",
        help="of the step, after warm-up and decay",
        chart="learning-rate",
        caption=Caption.HIGHEST,
        column="learning_rate",
    ),
    StepMetric(
        name="tokens_per_s",
        label="throughput",
        help="tokens computed, padding included, by all processes",
        unit="tokens per second",
        chart="throughput",
        digits=",.0f",
        column="tokens_per_second",
    ),
    StepMetric(
        name="row_tokens_per_s",
        label="throughput without padding",
        help="tokens of the rows themselves, by all processes",
        unit="tokens per second",
        chart="throughput",
        digits=",.0f",
    ),
    StepMetric(
        name="memory_bytes",
        label="peak memory",
        help="of one GPU or CPU process since the start",
        unit="bytes",
        whole=True,
        column="memory_bytes",
    ),
    StepMetric(
        name="gradient_norm",
        label="gradient norm",
        help="L2 norm over all trained weights before clipping; none of a step that float16 skipped",
        chart="gradient-norm",
        caption=Caption.HIGHEST,
        over=Over.MEAN,
    ),
)

STEP_CHARTS: Mapping[str, tuple[StepMetric, ...]] = MappingProxyType(
    {
        chart: tuple(metric for metric in STEP_METRICS if metric.chart == chart)
        for chart in dict.fromkeys(metric.chart for metric in STEP_METRICS if metric.chart)
    }
)
