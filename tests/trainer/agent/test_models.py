"""Downloaded models keep to their limit, and none goes that is in use."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.trainer.agent.conftest import StartAgent
from tests.trainer.agent.fakes.fake_portal import FakePortal, until
from tests.trainer.agent.fakes.seen import steps
from trainer.agent.node.models import HUB, held, make_room
from trainer.agent.settings import read_settings


def download(models: Path, name: str, age_s: float, size: int = 1000) -> Path:
    """As the hub client lays it out, last used so long ago."""
    folder = models / HUB / f"models--{name.replace('/', '--')}"
    (folder / "blobs").mkdir(parents=True)
    (folder / "blobs" / "0a1b").write_bytes(bytes(size))
    (folder / "snapshots").mkdir()
    (folder / "snapshots" / "model.safetensors").symlink_to("../blobs/0a1b")
    then = folder.stat().st_mtime - age_s
    os.utime(folder, (then, then))
    return folder


def left(models: Path) -> set[str]:
    return {path.name.removeprefix("models--") for path in (models / HUB).iterdir()}


@pytest.mark.parametrize(
    ("limit", "stay"), [(3000, {"a--old", "a--new", "a--newer"}), (2500, {"a--new", "a--newer"}), (0, set())]
)
def test_models_unused_for_the_longest_time_go_first(tmp_path: Path, limit: int, stay: set[str]) -> None:
    for age, name in enumerate(("a/newer", "a/new", "a/old")):
        download(tmp_path, name, age * 100.0)
    make_room(tmp_path, limit, used=[])
    assert left(tmp_path) == stay


def test_models_in_use_and_those_put_there_by_hand_stay(tmp_path: Path) -> None:
    by_hand = tmp_path / "a" / "licensed"
    by_hand.mkdir(parents=True)
    download(tmp_path, "a/old", 100.0)
    download(tmp_path, "a/new", 0.0)
    make_room(tmp_path, 1000, used=["a/old", "builtin/tiny-llama"])
    assert left(tmp_path) == {"a--old"}
    assert by_hand.exists()


def test_a_node_makes_room_when_it_takes_up_a_claim(
    portal: FakePortal, node_dir: Path, start_agent: StartAgent
) -> None:
    models = node_dir / "models"
    download(models, "a/old", 100.0)
    download(models, "a/used", 200.0)
    portal.give("c1", "steady", model="a/used")
    running = start_agent(offline=False, models_limit_bytes=1000)
    until(lambda: steps(portal.claims["c1"]))
    assert left(models) == {"a--used"}
    running.stop()


def test_the_limit_is_given_in_gib() -> None:
    given = ["--portal", "http://127.0.0.1:1", "--online", "--models-limit", "1.5"]
    assert read_settings(given).models_limit_bytes == 1_610_612_736


def test_models_that_lie_here_are_told(tmp_path: Path) -> None:
    def file(name: str) -> None:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("main")

    for name in ("org/by-hand/config.json", "builtin/tiny/config.json", "org/no-model/readme"):
        file(name)
    for model in ("whole", "half", "without-weights"):
        file(f"huggingface/hub/models--org--{model}/refs/main")
        file(f"huggingface/hub/models--org--{model}/snapshots/main/config.json")
    for model in ("whole", "half"):
        file(f"huggingface/hub/models--org--{model}/snapshots/main/model.safetensors")
    file("huggingface/hub/models--org--half/blobs/1.incomplete")
    assert held(tmp_path) == ("org/by-hand", "org/whole")
