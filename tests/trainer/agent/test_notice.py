"""Does an agent hear that its machine is taken back?"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from trainer.agent.errors import SetupError
from trainer.agent.node import notice
from trainer.agent.node.notice import NoticeWatch
from trainer.agent.settings import read_settings

PORTAL = ["--portal", "http://127.0.0.1:8000"]


def left(watch: NoticeWatch) -> float | None:
    watch.look()
    return watch.left_s()


@pytest.mark.parametrize(
    ("said", "seconds"), [("", 120), ("30\n", 30), ('{"action": "stop"}', 120), ("-5", 0)]
)
def test_a_file_is_a_notice_as_long_as_it_is_there(tmp_path: Path, said: str, seconds: float) -> None:
    file = tmp_path / "notice"
    watch = NoticeWatch(str(file))
    assert left(watch) is None
    file.write_text(said)
    found = left(watch)
    assert found is not None
    assert seconds - 2 <= found <= seconds
    file.unlink()
    assert left(watch) is None


def test_a_command_is_a_notice_while_it_ends_well(tmp_path: Path) -> None:
    assert left(NoticeWatch("sh -c 'exit 1'")) is None
    found = left(NoticeWatch("sh -c 'echo 45 seconds'"))
    assert found is not None
    assert 43 <= found <= 45


def test_a_command_that_hangs_is_neither_a_notice_nor_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trainer.agent.node.notice.COMMAND_FOR_S", 0.3)
    hangs = tmp_path / "hangs"
    watch = NoticeWatch(f"sh -c 'test -e {hangs} && sleep 5; echo 60'")
    assert left(watch) is not None
    hangs.touch()
    assert left(watch) is not None


def test_a_number_that_counts_down_is_followed_and_one_that_stays_runs_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = iter((0.0, 0.0, 30.0, 40.0, 40.0))  # of each look that starts a count, and of each that reads it
    monkeypatch.setattr(notice, "time", SimpleNamespace(monotonic=lambda: next(now)))
    file = tmp_path / "notice"
    watch = NoticeWatch(str(file))
    file.write_text("100")
    assert [left(watch), left(watch)] == [100, 70]
    file.write_text("50")
    assert left(watch) == 50


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--kind", "spot"], "--kind spot needs --market"),
        (["--market", "east"], "--market goes with --kind"),
        (["--kind", "on_demand", "--notice", "/run/notice"], "--notice goes with --kind spot"),
    ],
)
def test_options_that_do_not_go_together_are_named(options: list[str], message: str) -> None:
    with pytest.raises(SetupError, match=message):
        read_settings([*PORTAL, *options])
