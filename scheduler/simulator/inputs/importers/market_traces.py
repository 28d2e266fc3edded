"""Recorded markets in our own schema, and in those of public series.

A public series holds either prices or counts of nodes, never both of one market. Most are written down at
changes alone; a value then holds until the next row, and is repeated so that it does not look like a gap.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from scheduler.core.market.types import Quote
from scheduler.simulator.errors import TraceError
from scheduler.simulator.inputs import files
from scheduler.simulator.inputs.cells import converted, number, optional, wall_clock, whole

REPEATED_S = 600.0
_NAMED = 20  # markets of a file that a message lists
# GPUs of an instance, whose price is that of all of them
_GPUS = {
    "p2.xlarge": 1, "p2.8xlarge": 8, "p2.16xlarge": 16, "p3.2xlarge": 1, "p3.8xlarge": 4, "p3.16xlarge": 8,
    "g2.2xlarge": 1, "g2.8xlarge": 4,
}  # fmt: skip

ByPart = Mapping[str, list[Quote]]


@dataclass(frozen=True, slots=True)
class MarketTrace:
    """A recorded market; times count from its beginning."""

    name: str
    quotes: tuple[Quote, ...]

    @property
    def length_s(self) -> float:
        return self.quotes[-1].at


@dataclass(frozen=True, slots=True)
class MarketImporter:
    """A reader of the rows that have these columns.

    repeats: values hold until the next row.
    """

    name: str
    columns: frozenset[str]
    read: Callable[[Iterable[files.Row], str], Iterator[tuple[str, Quote]]]
    repeats: bool = True


def load_market(path: Path, part: str | None = None) -> MarketTrace:
    """Read a recorded market. Raises TraceError.

    part: one of the series of a file that holds several.
    """
    header = frozenset(files.read_header(path))
    importer = next((one for one in IMPORTERS if one.columns <= header), None)
    if importer is None:
        known = "; ".join(f"{one.name}: {', '.join(sorted(one.columns))}" for one in IMPORTERS)
        raise TraceError(f"{path}: its columns are no known market's. Known are {known}")
    parts: dict[str, list[Quote]] = {}
    for name, quote in importer.read(files.read_rows(path), path.name):
        parts.setdefault(name, []).append(quote)
    name, quotes = _chosen(parts, part, path)
    ordered = quotes  # our own schema is in order, or refused by `checked`
    if importer.repeats:
        by_time = sorted({quote.at: quote for quote in quotes}.values())
        ordered = list(_repeated(by_time, _end(path, name)))
    origin = ordered[0].at
    return MarketTrace(name or path.stem, tuple(quote._replace(at=quote.at - origin) for quote in ordered))


def paired(counts: MarketTrace, prices: MarketTrace) -> MarketTrace:
    """The nodes of one market at the prices of another; no public series has both.

    Raises TraceError if a side lacks what it is to give.
    """
    if all(quote.available is None for quote in counts.quotes):
        raise TraceError(f"{counts.name}: has no numbers of nodes; name a series that has, and prices apart")
    known = [quote for quote in prices.quotes if quote.price is not None]
    if not known:
        raise TraceError(f"{prices.name}: has no prices; name a series that has")
    length = counts.length_s
    theirs = (Quote(quote.at, quote.price, None) for quote in known if quote.at <= length)
    ours = (quote._replace(price=None) for quote in counts.quotes)
    return MarketTrace(counts.name, tuple(_merged([*ours, *theirs])))


def at_price(counts: MarketTrace, price: float) -> MarketTrace:
    """The nodes of a market that has no prices, at one price."""
    return MarketTrace(counts.name, tuple(quote._replace(price=price) for quote in counts.quotes))


def _chosen(parts: ByPart, part: str | None, path: Path) -> tuple[str, list[Quote]]:
    if not parts:
        raise TraceError(f"{path}: has no row")
    named = ", ".join(sorted(parts)[:_NAMED]) + (", ..." if len(parts) > _NAMED else "")
    if part is None and len(parts) > 1:
        raise TraceError(f"{path}: holds {len(parts)} markets; name one of them: {named}")
    if part is not None and part not in parts:
        raise TraceError(f"{path}: has no market {part!r}; there are {named}")
    name = part if part is not None else next(iter(parts))
    return name, parts[name]


def _repeated(quotes: list[Quote], end: float | None) -> Iterator[Quote]:
    """Each value again and again until the next one."""
    last = quotes[-1]._replace(at=end) if end is not None and end > quotes[-1].at else None
    for quote, following in pairwise([*quotes, *([last] if last else [])]):
        steps = max(1, int((following.at - quote.at - 1e-6) // REPEATED_S) + 1)
        yield from (quote._replace(at=quote.at + step * REPEATED_S) for step in range(steps))
    yield last or quotes[-1]


def _end(path: Path, name: str) -> float | None:
    """When a series of SkyPilot ends, by the index beside it."""
    index = path.with_name("index.csv.gz")
    if not index.exists():
        return None
    ends = {row["trace"]: number(row, "ticks") * number(row, "gap_s") for row in files.read_rows(index)}
    return ends.get(name)


def _merged(quotes: list[Quote]) -> Iterator[Quote]:
    """In the order of time, those of one moment as one."""
    by_time: dict[float, Quote] = {}
    for at, price, available in quotes:
        known = by_time.get(at, Quote(at, None, None))
        by_time[at] = Quote(
            at, known.price if price is None else price, known.available if available is None else available
        )
    yield from sorted(by_time.values(), key=lambda quote: quote.at)


def _native(rows: Iterable[files.Row], file: str) -> Iterator[tuple[str, Quote]]:
    """Our own schema, docs/simulator.md."""

    def quote(row: files.Row) -> Quote:
        available = None if not row.get("available") else whole(row, "available")
        return Quote(number(row, "t_s"), optional(row, "price"), available)

    needs = "t_s, price or available as numbers"
    yield from (("", one) for one in converted(rows, quote, file=file, needs=needs))


def _counts(part: str, time: Callable[[files.Row], float]) -> Callable[..., Iterator[tuple[str, Quote]]]:
    """Series of counts; `part` is the column that tells them apart."""

    def read(rows: Iterable[files.Row], file: str) -> Iterator[tuple[str, Quote]]:
        def named(row: files.Row) -> tuple[str, Quote]:
            return row[part] if part else "", Quote(time(row), None, whole(row, "available"))

        yield from converted(rows, named, file=file, needs="times and available as numbers")

    return read


def _prices(time: str) -> Callable[..., Iterator[tuple[str, Quote]]]:
    """Prices of whole instances of AWS, by zone and type."""

    def read(rows: Iterable[files.Row], file: str) -> Iterator[tuple[str, Quote]]:
        def named(row: files.Row) -> tuple[str, Quote]:
            kind = row["instance_type"]
            if kind not in _GPUS:
                raise ValueError(f"nothing is known of the GPUs of a {kind}")
            price = number(row, "price_usd_per_h") / _GPUS[kind]
            return f"{row['zone']}/{kind}", Quote(wall_clock(row, time), price, None)

        yield from converted(rows, named, file=file, needs="a known instance type, a time and a price")

    return read


def _events(rows: Iterable[files.Row], file: str) -> Iterator[tuple[str, Quote]]:
    """Nodes that are added and removed."""
    there: set[str] = set()
    for at, event, node in converted(
        rows, lambda row: (number(row, "t_ms") / 1000, row["event"], row["node"]), file=file, needs="t_ms"
    ):
        (there.add if event == "add" else there.discard)(node)
        yield "", Quote(at, None, len(there))


def _pings(rows: Iterable[files.Row], file: str) -> Iterator[tuple[str, Quote]]:
    """Instances that were held, by pings; some refusals name no zone."""
    there: dict[str, set[str]] = {}
    pings = sorted(
        converted(rows, lambda row: (wall_clock(row, "time_utc"), row), file=file, needs="time_utc"),
        key=lambda pair: pair[0],
    )
    for at, row in pings:
        if row["event"] not in ("running", "gone") or not row["zone"]:
            continue
        part = "/".join((row["campaign"], row["provider"], row["zone"], f"{row['gpus']}x{row['gpu']}"))
        held = there.setdefault(part, set())
        (held.add if row["event"] == "running" else held.discard)(row["instance"])
        yield part, Quote(at, None, len(held))


def _columns(text: str) -> frozenset[str]:
    return frozenset(text.split(","))


IMPORTERS = (
    MarketImporter(
        "skypilot", _columns("trace,t_s,available"), _counts("trace", lambda row: number(row, "t_s"))
    ),
    MarketImporter(
        "parcae", _columns("segment,t_s,available"), _counts("segment", lambda row: number(row, "t_s"))
    ),
    MarketImporter(
        "bamboo-counts",
        _columns("date,time,available"),
        _counts("", lambda row: wall_clock({"at": f"{row['date']} {row['time']}"}, "at")),
    ),
    MarketImporter("bamboo-events", _columns("t_ms,event,node"), _events),
    MarketImporter("aws-2016", _columns("time,instance_type,zone,price_usd_per_h"), _prices("time")),
    MarketImporter("aws-2020", _columns("time_utc,instance_type,zone,price_usd_per_h"), _prices("time_utc")),
    MarketImporter("pings-2020", _columns("campaign,time_utc,instance,zone,event"), _pings),
    MarketImporter("foretune", _columns("t_s"), _native, repeats=False),
)
