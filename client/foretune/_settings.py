"""Which portal, and who asks it: arguments, the environment, else a profile.

A project's `.foretune.toml` may name a profile and a team, never an address or a token: whoever gives one a
folder must not choose where its tokens go.
"""

from __future__ import annotations

import contextlib
import json
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ._errors import NotConfigured

URL, TOKEN, PROFILE = "FORETUNE_URL", "FORETUNE_TOKEN", "FORETUNE_PROFILE"  # the environment's
PROJECT = ".foretune.toml"
SERVICE = "foretune"  # in the keyring
DEFAULT = "default"


@dataclass(frozen=True)
class Access:
    """An address and a token, either perhaps empty."""

    url: str
    token: str

    def __repr__(self) -> str:
        return f"Access({self.url!r}, token='***')"


@dataclass(frozen=True)
class Project:
    """What a folder says of itself."""

    profile: str = ""
    team: str = ""


def access(url: str = "", token: str = "", profile: str = "") -> Access:
    """Raises NotConfigured where a profile is named that is not there."""
    url, token = url or os.environ.get(URL, ""), token or os.environ.get(TOKEN, "")
    if url and token:
        return Access(url, token.strip())
    name = chosen_profile(profile)
    kept = profiles().get(name)
    if kept is None:
        if name != DEFAULT:
            raise NotConfigured(
                f"There is no profile {name}: `foretune login URL --profile {name}` makes it."
            )
        return Access(url, token.strip())
    # The token of a profile goes to the portal of that profile only.
    if url and url.rstrip("/") != str(kept.get("url", "")).rstrip("/"):
        return Access(url, token.strip())
    return Access(url or str(kept.get("url", "")), (token or _token_of(name, kept)).strip())


def chosen_profile(profile: str = "") -> str:
    return (
        profile
        or os.environ.get(PROFILE, "")
        or project().profile
        or str(_config().get("profile", ""))
        or DEFAULT
    )


def profiles() -> dict[str, dict[str, Any]]:
    found = _config().get("profiles", {})
    return {name: dict(one) for name, one in found.items()}


def keep(name: str, *, url: str, token: str) -> str:
    """Keep a profile and use it from now on; returns where its token lies."""
    config = _config()
    in_keyring = _put_into_keyring(name, token)
    kept = {"url": url} if in_keyring else {"url": url, "token": token}
    _write({"profile": name, "profiles": {**config.get("profiles", {}), name: kept}})
    return "the keyring" if in_keyring else str(config_file())


def use(name: str) -> None:
    if name not in profiles():
        raise NotConfigured(f"There is no profile {name}; there are: {', '.join(profiles()) or 'none'}.")
    _write({**_config(), "profile": name})


def forget(name: str) -> bool:
    """Remove a profile and its token; returns whether it was there."""
    config, kept = _config(), profiles()
    if kept.pop(name, None) is None:
        return False
    with contextlib.suppress(Exception):
        _keyring().delete_password(SERVICE, name)
    using = config.get("profile", "")
    _write({"profile": next(iter(kept), "") if using == name else using, "profiles": kept})
    return True


def project() -> Project:
    """What the nearest `.foretune.toml`, here or above, says. Raises NotConfigured."""
    here = Path.cwd()
    for folder in (here, *here.parents):
        file = folder / PROJECT
        if file.is_file():
            said = _toml(file)
            if unknown := sorted(set(said) - {"profile", "team"}):
                raise NotConfigured(f"{file}: {unknown[0]} cannot stand here; only profile and team can.")
            return Project(**{name: str(value) for name, value in said.items()})
    return Project()


def config_file() -> Path:
    import click  # knows where each system keeps such files

    return Path(click.get_app_dir("foretune")) / "config.toml"


def _config() -> dict[str, Any]:
    file = config_file()
    return _toml(file) if file.is_file() else {}


def _toml(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as wrong:
        raise NotConfigured(f"{file} cannot be read: {wrong}") from wrong


def _write(config: Mapping[str, Any]) -> None:
    """Replace the file at once; nobody else may read it, not even for a moment."""
    file = config_file()
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    lines = [f"profile = {_quoted(config.get('profile', ''))}"]
    for name, kept in config.get("profiles", {}).items():
        lines += ["", f"[profiles.{_quoted(name)}]"]
        lines += [f"{key} = {_quoted(value)}" for key, value in kept.items()]
    partial = file.with_name(f"{file.name}.{os.getpid()}")
    with os.fdopen(
        os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8"
    ) as opened:
        opened.write("\n".join(lines) + "\n")
    partial.replace(file)


def _quoted(value: object) -> str:
    """A TOML string, whose escapes are those of JSON."""
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")


def _token_of(name: str, kept: Mapping[str, Any]) -> str:
    if "token" in kept:
        return str(kept["token"])
    with contextlib.suppress(Exception):
        return str(_keyring().get_password(SERVICE, name) or "")
    return ""


def _put_into_keyring(name: str, token: str) -> bool:
    """False where there is no keyring, or none that can be used here."""
    try:
        ring = _keyring()
        ring.set_password(SERVICE, name, token)
        return bool(ring.get_password(SERVICE, name) == token)
    except Exception:  # noqa: BLE001 - each system's keyring raises what it likes
        return False


def _keyring() -> Any:
    import importlib

    return importlib.import_module("keyring")
