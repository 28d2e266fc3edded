"""Profiles: where address and token come from, and who may read them."""

from __future__ import annotations

import stat
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from client.foretune import NotConfigured, _settings


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name in ("FORETUNE_URL", "FORETUNE_TOKEN", "FORETUNE_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setitem(sys.modules, "keyring", None)
    (tmp_path / "project" / "deep").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "project" / "deep")
    return tmp_path


def test_the_environment_comes_before_profiles(monkeypatch: pytest.MonkeyPatch) -> None:
    _settings.keep("default", url="https://a", token="ft-a")
    assert _settings.access() == _settings.Access("https://a", "ft-a")
    monkeypatch.setenv("FORETUNE_TOKEN", "ft-env")
    assert _settings.access() == _settings.Access("https://a", "ft-env")
    monkeypatch.setenv("FORETUNE_URL", "https://b")
    assert _settings.access() == _settings.Access("https://b", "ft-env")
    assert _settings.access("https://c", "ft-c") == _settings.Access("https://c", "ft-c")


def test_a_profiles_token_goes_to_its_own_portal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    _settings.keep("default", url="https://a", token="ft-a")
    monkeypatch.setenv("FORETUNE_URL", "https://evil")
    assert _settings.access() == _settings.Access("https://evil", "")
    monkeypatch.setenv("FORETUNE_URL", "https://a/")
    assert _settings.access().token == "ft-a"


def test_profiles_are_kept_chosen_and_forgotten(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    odd = 'quo"te \\ back\tslash é \x7f'
    for name in ("work", odd):
        _settings.keep(name, url=f"https://{len(name)}", token="ft-x")
    file = home / "config" / "foretune" / "config.toml"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert list(_settings.profiles()) == ["work", odd]
    assert _settings.chosen_profile() == odd
    _settings.use("work")
    assert _settings.access().url == "https://4"
    monkeypatch.setenv("FORETUNE_PROFILE", odd)
    assert _settings.access().url == f"https://{len(odd)}"
    assert _settings.access(profile="work").url == "https://4"
    assert _settings.forget(odd)
    assert not _settings.forget(odd)
    for ask in (_settings.access, lambda: _settings.use(odd)):
        with pytest.raises(NotConfigured, match="no profile"):
            ask()


def test_a_project_names_profile_and_team_and_never_where_tokens_go(home: Path) -> None:
    _settings.keep("work", url="https://work", token="ft-w")
    _settings.keep("other", url="https://other", token="ft-o")
    project = home / "project" / ".foretune.toml"
    project.write_text('profile = "work"\nteam = "Linguists"\n')
    assert _settings.access() == _settings.Access("https://work", "ft-w")
    assert _settings.project().team == "Linguists"
    for wrong in ('url = "https://evil"\n', 'token = "x"\n', "profile = \n"):
        project.write_text(wrong)
        with pytest.raises(NotConfigured, match=r"\.foretune\.toml"):
            _settings.access()


def test_a_keyring_keeps_the_token_if_there_is_one(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ring: dict[tuple[str, str], str] = {}
    fake = SimpleNamespace(
        set_password=lambda service, name, token: ring.update({(service, name): token}),
        get_password=lambda service, name: ring.get((service, name)),
        delete_password=lambda service, name: ring.pop((service, name)),
    )
    monkeypatch.setitem(sys.modules, "keyring", fake)
    assert _settings.keep("default", url="https://a", token="ft-ring") == "the keyring"
    assert "ft-ring" not in (home / "config" / "foretune" / "config.toml").read_text()
    assert _settings.access() == _settings.Access("https://a", "ft-ring")
    assert "ft-ring" not in repr(_settings.access())
    _settings.forget("default")
    assert ring == {}
