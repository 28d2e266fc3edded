"""System checks explain settings that would fail later."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from portal.ops import checks


def ids(found: list[Any]) -> list[str]:
    assert all(message.hint for message in found)
    return [message.id for message in found]


def test_the_settings_of_the_tests_are_fine() -> None:
    assert checks.data_dir() == checks.broker() == checks.nodes_of_a_job() == []


def test_a_job_on_no_node_is_explained(settings: Any) -> None:
    settings.MAX_NODES_PER_JOB = 0
    assert ids(checks.nodes_of_a_job()) == ["portal.E005"]


@pytest.mark.parametrize(
    ("name", "expected"), [("sjf", []), ("pollux", ["portal.E006"]), ("x", ["portal.E006"])]
)
def test_a_policy_that_cannot_run_live_is_explained(settings: Any, name: str, expected: list[str]) -> None:
    settings.POLICY = name
    assert ids(checks.policy()) == expected


def test_a_data_folder_that_is_a_file_is_explained(settings: Any, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    settings.DATA_DIR = tmp_path / "file"
    assert ids(checks.data_dir()) == ["portal.E001"]


def test_roots_of_models_that_would_show_artifacts_are_refused(settings: Any, tmp_path: Path) -> None:
    settings.DATA_DIR = tmp_path / "data"
    artifacts = tmp_path / "data" / "artifacts"
    artifacts.mkdir(parents=True)
    (tmp_path / "link").symlink_to(artifacts)
    (tmp_path / "models").mkdir()
    for root, expected in (("models", []), ("data/artifacts", ["portal.E008"]), ("link", ["portal.E008"])):
        settings.MODEL_ROOTS = [tmp_path / root]
        assert ids(checks.model_roots()) == expected
    settings.MODEL_ROOTS = [Path("/"), Path("models")]
    assert ids(checks.model_roots()) == ["portal.E008", "portal.E007"]


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("redis://localhost:6379/0", []),
        ("rediss://user:pass@host/1", []),
        ("filesystem://", []),
        ("http://localhost", ["portal.E002"]),
        ("localhost:6379", ["portal.E002"]),
        ("redis:///0", ["portal.E003"]),
        ("redis+socket:///" + "x" * 101, ["portal.E004"]),
    ],
)
def test_broker_addresses(url: str, expected: list[str], settings: Any) -> None:
    settings.CELERY_BROKER_URL = url
    assert ids(checks.broker()) == expected


def test_production_on_sqlite_with_a_made_up_key_is_warned_of(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(settings.DATABASES["default"], "ENGINE", "django.db.backends.sqlite3")
    monkeypatch.delenv("SECRET_KEY", raising=False)
    assert ids(checks.production()) == ["portal.W001", "portal.W002"]


@pytest.mark.parametrize("name", ["", "EUR", "€", "kr", "US$", "zł", "GPU credits"])
def test_a_short_text_is_a_currency(settings: Any, name: str) -> None:
    settings.CURRENCY = name
    assert checks.currency() == []


@pytest.mark.parametrize(
    "name", ["E" * 13, "EUR\n", "2 EUR", "<b>", "-EUR", "a,b", '"', "?", "🍕", " EUR", "a  b", "x/y"]
)
def test_a_currency_that_reads_like_something_else_is_explained(settings: Any, name: str) -> None:
    settings.CURRENCY = name
    assert ids(checks.currency()) == ["portal.E009"]
