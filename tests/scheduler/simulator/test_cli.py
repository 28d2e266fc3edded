"""Both interfaces of the simulator: the same figures, clear refusals."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from scheduler.simulator import cli

KEYS = [
    "policy", "knowledge", "jobs", "refused", "load", "jct_mean_s", "jct_p50_s", "jct_p95_s", "jct_p99_s",
    "wait_mean_s", "slowdown_mean", "makespan_s", "utilisation", "preemptions", "restarts", "cpu_s",
    "peak_rss_mb",
]  # fmt: skip


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "jobs.csv"
    path.write_text("job_id,submit_s,duration_s,gpus\na,0,100,4\nb,10,50,2\nc,20,10,0\nd,30,10,64\n")
    return path


def test_the_command_writes_one_object_a_policy_and_a_report(trace: Path, tmp_path: Path) -> None:
    figures, page = tmp_path / "out.json", tmp_path / "out.html"
    arguments = ["--trace", str(trace), "--cluster", "gpu:1x4", "--json", str(figures), "--html", str(page)]
    call_command("simulate", *arguments, "--policy", "fifo", "--policy", "srtf", "--knowledge", "oracle")
    results = json.loads(figures.read_text())
    assert [list(result) for result in results] == [KEYS, KEYS]
    assert [(one["policy"], one["jobs"], one["refused"]) for one in results] == [
        ("fifo", 2, 2),
        ("srtf", 2, 2),
    ]
    assert results[0]["jct_mean_s"] == pytest.approx((100 + 140) / 2)
    text = page.read_text()
    assert "Job completion time" in text
    assert "gpus is 0; a job needs more than 0" in text


def test_it_runs_without_django(trace: Path, tmp_path: Path) -> None:
    code = (
        "import sys; from scheduler.simulator.cli import main; code = main(sys.argv[1:]);"
        "sys.exit(code or 'django' in sys.modules)"
    )
    arguments = ["--trace", trace, "--cluster", "gpu:1x4", "--policy", "fifo", "--json", tmp_path / "o.json"]
    done = subprocess.run([sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "o.json").read_text())[0]["jobs"] == 2


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"--policy": "best"}, "--policy: 'best' is no policy; there are"),
        ({"--cluster": "gpu"}, "--cluster: 'gpu' is not MODEL:NODESxGPUS"),
        ({"--cluster": "gpu:1x1"}, "no job fits the cluster"),
        ({"--trace": "missing.csv"}, "missing.csv: cannot be read"),
        ({"--interference": "1.5"}, "--interference: 1.5 is no share"),
        ({"--restart-s": "-1"}, "--restart-s is -1; give 0 or more"),
        ({"--json": "/nowhere/out.json"}, "/nowhere/out.json: cannot be written"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_sentence(
    trace: Path, tmp_path: Path, change: dict[str, str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    options = {
        "--trace": str(trace),
        "--cluster": "gpu:1x4",
        "--policy": "fifo",
        "--json": str(tmp_path / "o"),
    }
    arguments = [text for pair in (options | change).items() for text in pair]
    assert cli.main(arguments) == 2
    assert words in capsys.readouterr().err
    with pytest.raises(CommandError, match=r"\w"):
        call_command("simulate", *arguments)


def test_a_number_that_is_none_is_refused(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["--trace", str(trace), "--cluster", "gpu:1x4", "--error", "nan"])
    assert ended.value.code == 2
    assert "argument --error: 'nan' is no number" in capsys.readouterr().err
