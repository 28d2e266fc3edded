"""job.yaml: what it says, and complaints that name file, line and the nearest key."""

from __future__ import annotations

from pathlib import Path

import pytest

from client.foretune import BadRequest
from client.foretune._job_file import TEMPLATE, JobFileError, parse, read


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "rows.jsonl").write_text("{}\n")
    return tmp_path


def test_words_and_numbers_mean_what_they_say(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPS", "30")
    monkeypatch.setenv("COMMIT", "007")
    text = """\
version: 1
model: builtin/tiny-llama
data: rows.jsonl
spot: no
name: ${COMMIT} as it stands
deadline_at: 2027-01-31T18:00:00+01:00
params:
  learning_rate: 1e-4
  max_steps: !env "${STEPS}"
  seed: !env '${COMMIT}'
  epochs: !env ${STEPS}
metadata: {commit: !env "c-${COMMIT}"}
"""
    file = parse(text.encode(), folder / "job.yaml")
    assert file.files == {"training_file": folder / "rows.jsonl"}
    assert file.fields == {
        "model": "builtin/tiny-llama",
        "spot": "no",
        "name": "${COMMIT} as it stands",
        "deadline_at": "2027-01-31T18:00:00+01:00",
        "params": {"learning_rate": 1e-4, "max_steps": "30", "seed": "007", "epochs": 30},
        "metadata": {"commit": "c-007"},
    }
    assert file.matrix == ()


def test_a_matrix_is_a_job_for_each_combination(folder: Path) -> None:
    text = "model: m\ntraining_file: file-1\nmatrix:\n  seed: [1, 2]\n  tuning: [lora, full]\nlimit: 2\n"
    file = parse(text.encode(), folder / "job.yaml")
    assert file.limit == 2
    assert list(file.matrix) == [
        {"seed": 1, "tuning": "lora"},
        {"seed": 1, "tuning": "full"},
        {"seed": 2, "tuning": "lora"},
        {"seed": 2, "tuning": "full"},
    ]


def test_what_init_writes_can_be_read(folder: Path) -> None:
    text = TEMPLATE.format(model="m", data="rows.jsonl")
    assert parse(text.encode(), folder / "job.yaml").fields == {"model": "m"}
    # Each line that is commented out can be taken in.
    (folder / "check.jsonl").write_text("{}\n")
    sentences = ("# A job", "# What you", "# One job", "#   commit")
    lines = [line.removeprefix("# ") for line in text.splitlines() if not line.startswith(sentences)]
    file = parse("\n".join(lines).encode(), folder / "job.yaml")
    assert {"goal", "params", "deadline_at", "metadata"} < set(file.fields)
    assert len(file.matrix) == 6


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("model: m\nmodle: m\n", "job.yaml:2: modle: is not known; did you mean model?"),
        (
            "model: m\nlearning_rate: 1\n",
            "job.yaml:2: learning_rate: is not known; a parameter of",
        ),
        ("version: 2\n", "job.yaml:1: version: this client reads version 1"),
        ("model: m\ndata: nowhere.jsonl\n", "job.yaml:2: data: there is no file"),
        ("data: rows.jsonl\ntraining_file: file-1\n", "job.yaml:1: data: stands for training_file"),
        ("data: [rows.jsonl]\n", "job.yaml:1: data: must be a path"),
        ("model: a\nmodel: b\n", "job.yaml:2: model stands here a second time"),
        ("model: !env ${NOT_THERE_AT_ALL}\n", "job.yaml:1: the environment has no NOT_THERE_AT_ALL"),
        ("model: !python/object m\n", "job.yaml:1: !python/object is not known"),
        ("model: m\nlimit: 2\n", "job.yaml:2: limit: is how many jobs of a matrix"),
        ("matrix: 1\n", "job.yaml:1: matrix: must have a list"),
        ("matrix:\n  seed: 1\n", "job.yaml:2: matrix.seed: must be a list"),
        ("matrix: {seed: [1]}\n", "job.yaml:1: matrix: makes 1 jobs"),
        ("model: m\n  name: [\n", "job.yaml:2: is no YAML"),
        ("- model\n", "job.yaml: a job's file has keys and values"),
        ("? [a]\n: b\n", "job.yaml:1: a key must be a word"),
        ("params: &a {b: *a}\n", "job.yaml:1: stands within itself"),
        ("model: \xff", "job.yaml: is not UTF-8"),
        ("[" * 5000, "job.yaml: is no YAML"),
    ],
)
def test_complaints_name_file_line_and_nearest_key(text: str, complaint: str, folder: Path) -> None:
    with pytest.raises(JobFileError) as raised:
        parse(text.encode("latin-1"), folder / "job.yaml")
    assert f"{folder}/{complaint}" in str(raised.value)


def test_the_portals_complaints_name_the_lines_they_are_about(folder: Path) -> None:
    (folder / "job.yaml").write_text("model: m\ndata: rows.jsonl\nparams:\n  epochs: 0\n")
    file = read(folder / "job.yaml")
    fields = {"params.epochs": ["must be 1 or more"], "training_file": "is none", "team": ["unknown"]}
    assert file.located(BadRequest("no", fields=fields)).splitlines() == [
        f"{folder}/job.yaml:4: params.epochs: must be 1 or more",
        f"{folder}/job.yaml:2: data: is none",
        f"{folder}/job.yaml: team: unknown",
    ]
