"""Simulated markets: nodes that are asked for come, those that are withdrawn go, money is counted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from scheduler.core.policies import POLICIES
from scheduler.simulator import cli
from scheduler.simulator.engine import Engine
from scheduler.simulator.output import market_figures
from tests.scheduler.simulator.worlds import job

ON_DEMAND = "v100:4x4@3"
HOUR_S = 3600.0


def figures(folder: Path, market: str, *more: str, jobs: str = "a,0,4,7200,28800") -> dict[str, Any]:
    """The figures of the command, of one job of two hours that is due after eight."""
    (folder / "jobs.csv").write_text(f"job_id,submit_s,gpus,duration_s,deadline_s\n{jobs}\n")
    (folder / "market.csv").write_text(f"t_s,price,available\n{market}\n")
    out = folder / "out.json"
    arguments = ["--trace", str(folder), "--policy", "spot", "--market", str(folder / "market.csv")]
    assert cli.main([*arguments, "--on-demand", ON_DEMAND, "--json", str(out), *more]) == 0
    (found,) = json.loads(out.read_text())
    return dict(found)


def steady(available: int, hours: float = 12.0, price: float = 1.0) -> str:
    return "\n".join(f"{t},{price},{available}" for t in range(0, int(hours * HOUR_S) + 1, 600))


def test_a_job_runs_on_spot_nodes_while_they_are_there(tmp_path: Path) -> None:
    found = figures(tmp_path, steady(2), "--decider", "greedy")
    assert (found["deadlines"], found["deadlines_met"], found["interruptions"]) == (1, 1, 0)
    assert found["cost_spot"] == pytest.approx(8.0)
    assert found["cost_on_demand"] == 0.0


def test_on_demand_nodes_are_always_there(tmp_path: Path) -> None:
    found = figures(tmp_path, steady(0), "--decider", "on-demand")
    assert (found["cost_spot"], found["cost_on_demand"]) == (0.0, pytest.approx(24.0))


def test_withdrawn_nodes_interrupt_and_the_job_goes_on_from_its_checkpoint(tmp_path: Path) -> None:
    market = "\n".join(
        f"{t},1.0,{0 if HOUR_S <= t < 2 * HOUR_S else 2}" for t in range(0, int(12 * HOUR_S) + 1, 600)
    )
    options = ("--decider", "greedy", "--restart-s", "60", "--checkpoint-s", "900")
    found = figures(tmp_path, market, *options)
    assert (found["interruptions"], found["restarts"], found["deadlines_met"]) == (1, 1, 1)
    # 2 h of work, 60 s of restart, and less than 900 s since the last checkpoint, on four GPUs for 1 each
    assert 8.0 + 4 * 60 / HOUR_S < found["cost_spot"] < 8.0 + 4 * 960 / HOUR_S
    assert found["cost_on_demand"] == 0.0


def test_money_follows_the_price_of_its_time(tmp_path: Path) -> None:
    market = "\n".join(f"{t},{1.0 if t < HOUR_S + 60 else 2.0},2" for t in range(60, int(9 * HOUR_S), 600))
    found = figures(tmp_path, f"0,1.0,2\n{market}", "--decider", "greedy")
    started = 60.0  # a round after the nodes were asked for
    dearer_from = next(t for t in range(60, int(9 * HOUR_S), 600) if t >= HOUR_S + 60)
    cheap_s = dearer_from - started
    assert found["cost_spot"] == pytest.approx(4 * (cheap_s + 2 * (2 * HOUR_S - cheap_s)) / HOUR_S)


def test_a_deadline_is_kept_by_on_demand_nodes_when_spot_nodes_stay_away(tmp_path: Path) -> None:
    found = figures(tmp_path, steady(0), "--decider", "greedy", "--restart-s", "60")
    assert (found["deadlines_met"], found["cost_on_demand"]) == (1, pytest.approx(24.0))


def test_other_jobs_have_the_owned_nodes(tmp_path: Path) -> None:
    rows = "a,0,4,7200,28800\nb,0,2,600,"
    found = figures(tmp_path, steady(2), "--cluster", "k80:1x2@0.5", "--decider", "greedy", jobs=rows)
    assert found["deadlines_met"] == 1
    assert found["cost_owned"] == pytest.approx(2 * 600 / HOUR_S * 0.5)


def test_a_job_that_may_never_start_does_not_keep_time_going(tmp_path: Path) -> None:
    rows = "a,0,4,7200,28800\nb,0,8,600,"
    found = figures(tmp_path, steady(2), "--cluster", "k80:1x2@0.5", "--decider", "greedy", jobs=rows)
    assert (found["jobs"], found["deadlines_met"]) == (2, 1)


def test_a_simulation_without_a_market_has_no_figures_of_one() -> None:
    from tests.scheduler.simulator.worlds import play

    engine: Engine = play([job("a")], policy=POLICIES["spot"])
    assert engine.runs["a"].finished is not None
    assert market_figures(engine) == {}


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--decider", "best"], "--decider: 'best' is none; there are on-demand, greedy"),
        (["--on-demand", "v100:4x4"], "--on-demand: is needed with --market: its nodes and the price"),
        (["--market-part", "b"], "has no market 'b'"),
        (["--cluster", "v100:1x2@1"], "--on-demand: a GPU model has one price"),
    ],
)
def test_options_that_make_no_market_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], problem: str
) -> None:
    (tmp_path / "jobs.csv").write_text("job_id,submit_s,gpus,duration_s,deadline_s\na,0,4,7200,28800\n")
    (tmp_path / "market.csv").write_text("t_s,price,available\n0,1,2\n")
    base = ["--trace", str(tmp_path), "--policy", "spot", "--json", str(tmp_path / "o.json")]
    market = ["--market", str(tmp_path / "market.csv"), "--on-demand", ON_DEMAND]
    assert cli.main([*base, *market, *options]) == 2
    assert problem in capsys.readouterr().err
    assert not (tmp_path / "o.json").exists()


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ("t_s,price,available\n0,-1,2\n", "sample 1: price is -1"),
        ("t_s,price,available\n0,3000,2\n", "sample 1: price is 3000 for an on-demand price of 3"),
        ("t_s,price\n0,1\n", "has prices but no numbers of nodes"),
        ("t_s,available\n0,1\n", "--spot-price: is needed"),
    ],
)
def test_markets_that_cannot_be_true_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], rows: str, problem: str
) -> None:
    (tmp_path / "jobs.csv").write_text("job_id,submit_s,gpus,duration_s\na,0,4,7200\n")
    (tmp_path / "market.csv").write_text(rows)
    base = ["--trace", str(tmp_path), "--policy", "spot", "--json", str(tmp_path / "o.json")]
    assert cli.main([*base, "--market", str(tmp_path / "market.csv"), "--on-demand", ON_DEMAND]) == 2
    assert problem in capsys.readouterr().err


def test_what_belongs_to_a_market_needs_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "jobs.csv").write_text("job_id,submit_s,gpus,duration_s\na,0,4,7200\n")
    base = ["--trace", str(tmp_path), "--policy", "spot", "--json", str(tmp_path / "o.json")]
    assert cli.main([*base, "--cluster", "v100:1x4", "--decider", "greedy"]) == 2
    assert "--decider: goes with --market; name its file" in capsys.readouterr().err
