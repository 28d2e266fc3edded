"""To begin: sign in, look around, write a first job."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from .base import Session, command, note, on_terminal, pairs

SCOPES = ("read", "submit", "write", "admin")


@command("login")
@click.argument("url", default="")
@click.option("--token", "source", metavar="-", default="", help="`-` reads an API token from stdin.")
@click.option("--device", is_flag=True, help="Confirm in a browser, on any device (the default).")
@click.option("--scope", type=click.Choice(SCOPES), default="submit", show_default=True, help="What it may.")
def login_command(session: Session, url: str, source: str, device: bool, scope: str) -> None:
    """Sign in to a portal and keep the token as a profile.

    The token goes into the system's keyring if there is one, else into a file that only you can read.
    """
    from .. import _settings

    name = session.profile or "default"
    url = (url or _settings.profiles().get(name, {}).get("url", "")).rstrip("/")
    if not url:
        raise click.UsageError("Name the portal: foretune login https://portal.example.org")
    if source and (source != "-" or device):
        raise click.UsageError(
            "Write `--token -` and give the token on stdin, where no list of processes shows it."
        )
    if source:
        token = _typed() if on_terminal() else sys.stdin.readline().strip()
    else:
        from .device import confirmed

        token = confirmed(url, scope)
    from .._sync.client import Client

    me = Client(url, token).me()
    place = _settings.keep(name, url=url, token=token)
    text = f"Signed in to {url} as {me.username}; the token lies in {place}."
    session.done(text, profile=name, url=url, username=me.username)


def _typed() -> str:
    return str(click.prompt("Token", hide_input=True, err=True)).strip()


@command("logout")
def logout_command(session: Session) -> None:
    """Forget a profile and its token.

    The portal's page API tokens ends the token itself.
    """
    from .. import _settings

    name = _settings.chosen_profile(session.profile)
    _forget(session, name)


def _forget(session: Session, name: str) -> None:
    from .. import _settings
    from .._errors import NotFound

    if not _settings.forget(name):
        raise NotFound(f"There is no profile {name}.", code="not_found", status=404)
    session.done(f"Profile {name} is forgotten.", profile=name)


@command("status")
def status_command(session: Session) -> None:
    """Show which portal answers, who you are there, releases and quota."""
    from .. import __version__, _settings
    from .._errors import NotFound
    from .._tables import size

    me = session.client.me()
    try:
        portal = session.client.version().raw
    except NotFound:
        portal = {}
    storage = me.extra.get("storage") or {}
    shown = {
        "profile": _settings.chosen_profile(session.profile),
        "url": session.client.transport.url,
        "client": __version__,
        "portal": portal,
        "me": me.raw,
    }
    used = f"{size(storage['used_bytes'])} of {size(storage['quota_bytes'])}" if storage else ""
    teams = ", ".join(_name(team) for team in me.extra.get("teams", []))
    session.show(
        shown,
        lambda: pairs(
            [
                ("portal", f"{shown['url']} {portal.get('version', '')}".strip()),
                ("profile", str(shown["profile"])),
                ("client", __version__),
                ("person", me.username + (" (administrator)" if me.admin else "")),
                ("teams", teams),
                ("uploads", used),
            ]
        ),
    )
    if warning := outdated(portal, session.client.transport.url):
        note(warning)


def outdated(portal: object, url: str) -> str:
    """What to do about a client that is too old for the portal; empty where it is not."""
    from .. import __version__

    least = portal.get("minimum_client") if isinstance(portal, dict) else None
    if not isinstance(least, str) or _release(least) <= _release(__version__):
        return ""
    return (
        f"This client is {__version__}, and the portal needs {least} or later: uv tool install, or pip"
        f" install, $(curl -fsS {url}/client/)"
    )


def _release(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".") if part.isdecimal())


def _name(team: object) -> str:
    return str(team.get("name", "")) if isinstance(team, dict) else str(team)


@click.group("profile")
def profile_command() -> None:
    """List, choose and remove profiles."""


@command("ls", parent=profile_command)
def profile_ls(session: Session) -> None:
    """List profiles; the one in use has a star."""
    from .. import _settings

    using = _settings.chosen_profile(session.profile)
    rows = [
        {"name": name, "url": kept.get("url", ""), "used": name == using}
        for name, kept in _settings.profiles().items()
    ]
    session.rows(
        rows,
        {
            "": lambda row: "*" if row["used"] else "",
            "name": lambda row: row["name"],
            "portal": lambda row: row["url"],
        },
        none="No profiles yet: foretune login URL",
    )


@command("use", parent=profile_command)
@click.argument("name")
def profile_use(session: Session, name: str) -> None:
    """Use this profile from now on."""
    from .. import _settings

    _settings.use(name)
    session.done(f"Profile {name} is in use.", profile=name)


@command("rm", parent=profile_command)
@click.argument("name")
def profile_rm(session: Session, name: str) -> None:
    """Remove a profile and its token."""
    _forget(session, name)


@command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion_command(session: Session, shell: str) -> None:
    """Print what makes your shell complete commands.

    For example `eval "$(foretune completion bash)"`.
    """
    from click.shell_completion import get_completion_class

    from . import foretune

    if kind := get_completion_class(shell):
        script = kind(foretune, {}, "foretune", "_FORETUNE_COMPLETE").source()
        session.show({"shell": shell, "script": script}, lambda: script)


@command("init")
@click.argument("path", type=click.Path(path_type=Path, dir_okay=False), default=Path("job.yaml"))
@click.option("-m", "--model", default="builtin/tiny-llama", show_default=True, help="The base model.")
@click.option("-d", "--data", default="rows.jsonl", show_default=True, help="The training data.")
@click.option("--force", is_flag=True, help="Replace a file that is there.")
def init_command(session: Session, path: Path, model: str, data: str, force: bool) -> None:
    """Write a job.yaml with comments."""
    from .._job_file import TEMPLATE

    try:
        with path.open("w" if force else "x", encoding="utf-8") as file:
            file.write(TEMPLATE.format(model=model, data=data))
    except FileExistsError:
        raise click.UsageError(f"{path} is there already; --force replaces it.") from None
    session.done(f"{path} is written: look at it, then `foretune run {path}`.", path=str(path))
