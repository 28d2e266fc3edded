"""Recorded markets: our schema, each public kind, and what cannot be read."""

from __future__ import annotations

from pathlib import Path

import pytest

from scheduler.core.market.types import Quote
from scheduler.simulator.errors import TraceError
from scheduler.simulator.inputs.importers.market_traces import at_price, load_market, paired


def written(folder: Path, text: str, name: str = "market.csv") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_our_own_schema_is_read_as_it_is(tmp_path: Path) -> None:
    market = load_market(written(tmp_path, "t_s,price,available\n100,0.9,4\n160,,0\n220,1.1,\n"))
    assert market.quotes == (Quote(0, 0.9, 4), Quote(60, None, 0), Quote(120, 1.1, None))
    assert (market.name, market.length_s) == ("market", 120)


def test_values_that_hold_until_the_next_row_are_repeated(tmp_path: Path) -> None:
    market = load_market(written(tmp_path, "trace,t_s,available\na,0,4\na,1500,2\nb,0,1\n"), "a")
    assert market.quotes == (
        Quote(0, None, 4), Quote(600, None, 4), Quote(1200, None, 4), Quote(1500, None, 2),
    )  # fmt: skip


def test_prices_of_instances_are_those_of_one_gpu(tmp_path: Path) -> None:
    rows = "time,instance_type,zone,price_usd_per_h\n2016-02-25T12:00:00Z,g2.8xlarge,z,2.0\n"
    assert load_market(written(tmp_path, rows)).quotes == (Quote(0, 0.5, None),)
    rows = "zone,instance_type,time_utc,price_usd_per_h\nz,p9.large,2020-01-01T00:00:00Z,2.0\n"
    with pytest.raises(TraceError, match="nothing is known of the GPUs of a p9"):
        load_market(written(tmp_path, rows))


def test_nodes_that_come_and_go_are_counted(tmp_path: Path) -> None:
    events = "t_ms,event,node\n0,add,a\n0,add,b\n1000,remove,a\n"
    assert load_market(written(tmp_path, events)).quotes == (Quote(0, None, 2), Quote(1, None, 1))
    pings = (
        "campaign,provider,time_utc,instance,zone,gpu,gpus,event\n"
        "c,gcp,2020-03-01T00:10:00Z,i,z,k80,1,gone\n"
        "c,gcp,2020-03-01T00:00:00Z,i,z,k80,1,running\n"
        "c,gcp,2020-03-01T00:05:00Z,,,k80,1,refused\n"
    )
    assert load_market(written(tmp_path, pings)).quotes == (Quote(0, None, 1), Quote(600, None, 0))


def test_counts_may_be_out_of_order(tmp_path: Path) -> None:
    rows = "date,time,available\n2021-12-10,13:08:00,80\n2021-12-10,13:07:00,79\n"
    assert load_market(written(tmp_path, rows)).quotes == (Quote(0, None, 79), Quote(60, None, 80))


def test_the_nodes_of_one_market_at_the_prices_of_another(tmp_path: Path) -> None:
    counts = load_market(written(tmp_path, "t_s,available\n0,4\n60,2\n"))
    prices = load_market(written(tmp_path, "t_s,price\n0,0.5\n30,0.6\n90,0.7\n", "prices.csv"))
    assert paired(counts, prices).quotes == (Quote(0, 0.5, 4), Quote(30, 0.6, None), Quote(60, None, 2))
    assert at_price(counts, 0.4).quotes == (Quote(0, 0.4, 4), Quote(60, 0.4, 2))
    with pytest.raises(TraceError, match="prices: has no numbers of nodes"):
        paired(prices, counts)
    with pytest.raises(TraceError, match="market: has no prices"):
        paired(counts, counts)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a,b\n1,2\n", "its columns are no known market's"),
        ("t_s,available\n", "has no row"),
        ("t_s,available\nx,1\n", "row 1: needs .*: t_s is 'x'; it must be a number"),
        ("trace,t_s,available\na,0,1\nb,0,1\n", "holds 2 markets; name one of them: a, b"),
    ],
)
def test_what_is_no_market_is_refused(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(TraceError, match=problem):
        load_market(written(tmp_path, text))


@pytest.mark.shared_data
@pytest.mark.parametrize(
    ("file", "part", "days"),
    [
        ("spot_skypilot/changes.csv.gz", "availability/16-node/aws-08-27-2023/us-east-2b_v100_1", 11.3),
        ("spot_2020/parcae_segments.csv.gz", "hh_55_65", 0.04),
        ("spot_2020/aws_gpu_spot_price_2020.csv.gz", "us-east-1b/p3.2xlarge", 91.6),
        ("spot_2020/spot_pings_2020.csv.gz", "2020-03-04/gcp/us-west1-b/8xv100", 3.1),
        ("spot_bamboo/gcp_v100x1-east1c.csv.gz", None, 1.0),
        ("spot_bamboo/p3-trace_events.csv.gz", None, 0.47),
        ("spot_aws_price_2016/g2.8xlarge_us-east-1a.csv.gz", None, 60.0),
    ],
)
def test_every_public_market_is_read(file: str, part: str | None, days: float) -> None:
    path = Path(__file__).parents[5] / "shared" / "data" / "traces" / file
    if not path.exists():
        pytest.skip(f"../shared/data/traces/{file} is not here")
    assert load_market(path, part).length_s / 86400 == pytest.approx(days, rel=0.05)
