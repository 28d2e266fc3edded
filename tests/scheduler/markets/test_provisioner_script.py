"""The provisioner of the documentation, run as it stands there against a tool with machines in a folder."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest

from scheduler.services.markets.provisioner import ProvisionerAnswer, ProvisionerFailed, ask

pytestmark = pytest.mark.skipif(shutil.which("jq") is None, reason="the script needs jq")
DOCUMENT = Path(__file__).parents[3] / "docs/markets/spot.md"
CLOUD = """#!/bin/sh
set -e
cd "$CLOUD_FOLDER"
[ ! -e down ] || exit 1
case $1 in
  list) ls machines | grep "^$3-" || true ;;
  create)
    [ "$(ls machines | wc -l)" -lt 3 ]
    n=$(($(cat count) + 1))
    echo $n > count
    echo "$7" > "machines/$3-$n" ;;
  delete) rm "machines/$2" ;;
  capacity) echo 4 ;;
  price) echo 0.29 ;;
esac
"""


class Rented:
    """The script in a folder beside its tool."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "machines").mkdir()
        (folder / "count").write_text("0")
        found = re.search(r"```sh\n(#!/bin/sh\n.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.S)
        assert found
        for name, text in {"rent": found[1], "cloud": CLOUD}.items():
            (folder / name).write_text(text)
            (folder / name).chmod(0o755)

    @property
    def machines(self) -> list[str]:
        return sorted(one.name for one in (self.folder / "machines").iterdir())

    def asked(self, do: str, **more: object) -> ProvisionerAnswer:
        return ask([str(self.folder / "rent")], {"do": do, **more, "market": "east-l4"})

    def wanted(self, nodes: int, kind: str = "spot") -> ProvisionerAnswer:
        return self.asked("want", kind=kind, nodes=nodes, join_token="fjoin-secret")


@pytest.fixture
def rented(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rented:
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("CLOUD_FOLDER", str(tmp_path))
    return Rented(tmp_path)


def test_the_worked_conversation(rented: Rented) -> None:
    offer = rented.asked("offer", nodes=0)
    assert (offer.available, offer.price) == (4, 0.29)
    assert rented.wanted(2).accepted == 2
    assert rented.machines == ["east-l4-spot-1", "east-l4-spot-2"]
    assert "fjoin-secret" in (rented.folder / "machines/east-l4-spot-1").read_text()
    assert rented.asked("offer", nodes=2).available == 6
    rented.asked("release", nodes=["east-l4-spot-1"])
    assert rented.machines == ["east-l4-spot-2"]


def test_asked_again_it_creates_what_is_missing_and_takes_nothing_away(rented: Rented) -> None:
    assert [rented.wanted(2).accepted, rented.wanted(2).accepted, rented.wanted(1).accepted] == [2, 2, 2]
    assert rented.wanted(1, "on_demand").accepted == 1
    assert rented.machines == ["east-l4-on_demand-3", "east-l4-spot-1", "east-l4-spot-2"]


def test_what_the_tool_refuses_is_not_accepted(rented: Rented) -> None:
    assert rented.wanted(5).accepted == 3


@pytest.mark.parametrize("do", ["offer", "want", "release"])
def test_a_tool_that_fails_creates_nothing_and_is_a_failure(rented: Rented, do: str) -> None:
    (rented.folder / "down").touch()
    with pytest.raises(ProvisionerFailed):
        rented.asked(
            do, kind="spot", nodes=["east-l4-spot-1"] if do == "release" else 2, join_token="fjoin-x"
        )
    assert rented.machines == []


def test_a_withdrawn_machine_does_not_keep_others_from_being_deleted(rented: Rented) -> None:
    rented.wanted(2)
    rented.asked("release", nodes=["east-l4-7", "east-l4-spot-1", "spot-2"])
    assert rented.machines == ["east-l4-spot-2"]
