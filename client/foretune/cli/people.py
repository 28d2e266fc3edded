"""People, teams, service accounts and tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import click

from .base import Columns, Session, command, list_rows, named, note, pairs, sure

SCOPES = ("read", "submit", "write", "admin")
PERSON, TEAM, TOKEN = click.argument("person"), click.argument("team"), click.argument("token")
YES = click.option("-y", "--yes", is_flag=True, help="Do not ask.")
OF = click.option("--of", metavar="ACCOUNT", help="Of a service account that you run, instead of your own.")


@click.group("tokens")
def tokens_command() -> None:
    """API tokens: yours, and those of service accounts that you run."""


def _tokens(session: Session, of: str | None) -> Any:
    return session.client.tokens_of(of) if of else session.client.tokens


@command("ls", parent=tokens_command)
@OF
def tokens_ls(session: Session, of: str | None) -> None:
    """List tokens; they themselves are not kept."""
    from .._tables import moment

    shown: Columns = {
        "name": lambda row: row["name"],
        "scope": lambda row: row["scope"],
        "team": lambda row: named(row["team"]),
        "begins with": lambda row: row["hint"],
        "last used": lambda row: moment(row["last_used_at"]),
        "ends": lambda row: "ended" if row["revoked_at"] else moment(row["expires_at"]),
        "id": lambda row: row["id"],
    }
    list_rows(session, _tokens(session, of), shown, none="No tokens.")


@command("make", parent=tokens_command)
@click.argument("name")
@click.option("--scope", type=click.Choice(SCOPES), default="submit", show_default=True, help="What it may.")
@click.option("--days", type=click.IntRange(1, 36_500), help="It ends then; usually after 90.")
@click.option("--no-end", is_flag=True, help="It never ends, where the portal allows that.")
@click.option("--team", help="The only one of your teams that it reaches.")
@click.option("--network", "networks", multiple=True, help="From where it may be used, e.g. 10.0.0.0/8.")
@OF
def tokens_make(
    session: Session,
    name: str,
    days: int | None,
    no_end: bool,
    team: str | None,
    networks: Sequence[str],
    of: str | None,
    scope: str,
) -> None:
    """Make a token and print it, this one time."""
    if days and no_end:
        raise click.UsageError("--days and --no-end do not go together.")
    end = datetime.now(UTC) + timedelta(days=days) if days else None
    asked: dict[str, Any] = {"name": name, "scope": scope}
    asked |= {"expires_at": end.isoformat() if end else None} if days or no_end else {}
    asked |= {"team": team} if team else {}
    asked |= {"networks": list(networks)} if networks else {}
    _secret(session, _tokens(session, of).create(**asked).raw)


@command("rotate", parent=tokens_command)
@TOKEN
@OF
def tokens_rotate(session: Session, token: str, of: str | None) -> None:
    """Print a new token for an old one, which goes on for a day."""
    tokens = _tokens(session, of)
    _secret(session, tokens.act(_live(tokens, token), "rotate").raw)


@command("end", parent=tokens_command)
@click.argument("names", nargs=-1, required=True, metavar="TOKEN...")
@OF
def tokens_end(session: Session, names: Sequence[str], of: str | None) -> None:
    """End tokens at once."""
    tokens = _tokens(session, of)
    for identity in [_live(tokens, name) for name in names]:  # all are known before any ends
        tokens.delete(identity)
        if session.as_json:
            session.line({"id": identity, "ended": True})
        else:
            note(f"{identity} has ended.")


def _live(tokens: Any, name: str) -> str:
    """The id of a token by that or its name.

    One that has ended leaves its name to others.
    """
    live = [token for token in tokens.list() if token.id == name or not token.revoked_at]
    return str(tokens.the_one(live, name).id)


def _secret(session: Session, made: Mapping[str, Any]) -> None:
    """A token on stdout; what it is, beside it."""
    from .._errors import Unreachable
    from .._tables import moment

    if made["token"] is None:
        raise Unreachable(
            f"The answer with the token was lost: `foretune tokens rotate {made['id']}` makes another."
        )
    note(
        f"{made['id']}, scope {made['scope']}, ends {moment(made['expires_at']) or 'never'}; shown only now:"
    )
    session.show(made, lambda: str(made["token"]))


@click.group("accounts")
def accounts_command() -> None:
    """Service accounts, for programs that should not act as a person."""


@command("ls", parent=accounts_command)
def accounts_ls(session: Session) -> None:
    """List the service accounts that you run."""
    shown: Columns = {
        "name": lambda row: row["username"],
        "team": lambda row: named(row["team"]),
        "state": lambda row: "active" if row["active"] else "ended",
        "id": lambda row: row["id"],
    }
    list_rows(session, session.client.service_accounts, shown, none="No service accounts.")


@command("make", parent=accounts_command)
@click.argument("name")
@click.option("--team", help="Whose leads run it; administrators may leave it out.")
def accounts_make(session: Session, name: str, team: str | None) -> None:
    """Make a service account."""
    asked = {"username": name, **({"team": team} if team else {})}
    made = session.client.service_accounts.create(**asked).raw
    session.show(made, lambda: f"{made['username']} ({made['id']})")
    note(f"foretune tokens make NAME --of {made['username']} gives it a token.")


@command("end", parent=accounts_command)
@click.argument("account")
@YES
def accounts_end(session: Session, account: str, yes: bool) -> None:
    """End a service account, its tokens and its unfinished jobs."""
    found = session.client.service_accounts.get(account)
    sure(f"End {found.username}, its tokens and its unfinished jobs?", yes)
    session.client.service_accounts.delete(found.id)
    session.done(f"{found.username} has ended.", id=found.id)


@command("activate", parent=accounts_command)
@click.argument("account")
def accounts_activate(session: Session, account: str) -> None:
    """Let a service account in again; its tokens stay ended."""
    told = session.client.service_accounts.act(account, "activate").raw
    session.show(told, lambda: f"{told['username']} is active")


@click.group("users")
def users_command() -> None:
    """People, for administrators."""


@command("ls", parent=users_command)
@click.argument("text", required=False)
def users_ls(session: Session, text: str | None) -> None:
    """List people, or those with this text in their name."""
    shown: Columns = {
        "name": lambda row: row["username"],
        "mail": lambda row: row["email"],
        "role": lambda row: "program" if row["service"] else "administrator" if row["admin"] else "user",
        "state": lambda row: "active" if row["active"] else "deactivated",
        "id": lambda row: row["id"],
    }
    list_rows(session, session.client.users, shown, none="Nobody.", username=text)


@command("show", parent=users_command)
@PERSON
def users_show(session: Session, person: str) -> None:
    """Show a person with their limits."""
    from .._tables import moment

    user = session.client.users.get(person).raw
    limits = session.client.request("GET", f"users/{user['id']}/limits/")
    rows = [
        ("person", f"{user['username']} ({user['id']})"),
        ("mail", user["email"]),
        ("role", "administrator" if user["admin"] else "user"),
        ("state", "active" if user["active"] else "deactivated"),
        ("since", moment(user["created_at"])),
        ("last sign-in", moment(user["last_login_at"])),
        ("limits", "their own" if limits["own"] else "those of everybody"),
        *((name.replace("_", " "), _amount(value)) for name, value in limits.items() if name != "own"),
    ]
    session.show({**user, "limits": limits}, lambda: pairs(rows))


def _amount(value: Any) -> str:
    """A limit; empty where there is none."""
    return f"{value:,.4g}" if isinstance(value, float) else named(value)


@command("make", parent=users_command)
@click.argument("name")
@click.option("--email", help="Their mail address.")
@click.option("--admin", is_flag=True, help="An administrator.")
def users_make(session: Session, name: str, email: str | None, admin: bool) -> None:
    """Make a person and print a password, this one time."""
    asked = {"username": name, "admin": admin, **({"email": email} if email else {})}
    _password(session, session.client.users.create(**asked).raw, name)


@command("password", parent=users_command)
@PERSON
@click.option("--keep-tokens", is_flag=True, help="Their API tokens go on.")
def users_password(session: Session, person: str, keep_tokens: bool) -> None:
    """Give a person a new password and print it; their sessions end."""
    told = session.client.users.act(person, "password", revoke_tokens=not keep_tokens).raw
    _password(session, told, person)


def _password(session: Session, told: Mapping[str, Any], person: str) -> None:
    from .._errors import Unreachable

    if told["password"] is None:
        raise Unreachable(f"The answer with it was lost: `foretune users password {person}` makes another.")
    note("The password is shown only now:")
    session.show(told, lambda: str(told["password"]))


@command("deactivate", parent=users_command)
@PERSON
@click.option(
    "--hand-over-to", metavar="PERSON", help="Who gets the unfinished jobs; else they are cancelled."
)
@YES
def users_deactivate(session: Session, person: str, hand_over_to: str | None, yes: bool) -> None:
    """Lock a person out at once; sessions and tokens end."""
    user = session.client.users.get(person)
    jobs = f"{hand_over_to} gets the unfinished jobs" if hand_over_to else "unfinished jobs are cancelled"
    sure(f"Deactivate {user.username}? Sessions and tokens end; {jobs}.", yes)
    given = {"hand_over_to": hand_over_to} if hand_over_to else {}
    told = session.client.users.act(user.id, "deactivate", **given).raw
    session.show(told, lambda: f"{told['username']} is deactivated")


@command("activate", parent=users_command)
@PERSON
def users_activate(session: Session, person: str) -> None:
    """Let a person in again; their tokens stay ended."""
    told = session.client.users.act(person, "activate").raw
    session.show(told, lambda: f"{told['username']} is active")


@click.group("teams")
def teams_command() -> None:
    """Teams, whose members see each other's jobs."""


@command("ls", parent=teams_command)
def teams_ls(session: Session) -> None:
    """List your teams, or all of them for administrators."""
    shown: Columns = {
        "name": lambda row: row["name"],
        ">members": lambda row: f"{row['size']:,}",
        "id": lambda row: row["id"],
    }
    list_rows(session, session.client.teams, shown, none="No teams.")


@command("show", parent=teams_command)
@TEAM
def teams_show(session: Session, team: str) -> None:
    """Show a team and its members."""
    _team(session, session.client.teams.get(session.client.teams.find(team).id).raw)


def _team(session: Session, told: Mapping[str, Any]) -> None:
    members = [(one["role"], f"{one['name']} ({one['id']})") for one in told["members"]]
    session.show(told, lambda: pairs([("team", f"{told['name']} ({told['id']})"), *members]))


@command("make", parent=teams_command)
@click.argument("name")
def teams_make(session: Session, name: str) -> None:
    """Make a team without members, as an administrator."""
    _team(session, session.client.teams.create(name=name).raw)


@command("add", parent=teams_command)
@TEAM
@PERSON
@click.option("--role", type=click.Choice(["member", "lead"]), default="member", show_default=True)
def teams_add(session: Session, team: str, person: str, role: str) -> None:
    """Take a person into a team."""
    found = session.client.teams.find(team)
    session.client.teams.act(found.id, "members", user=person, role=role)
    _team(session, session.client.teams.get(found.id).raw)


@command("remove", parent=teams_command)
@TEAM
@PERSON
def teams_remove(session: Session, team: str, person: str) -> None:
    """Take a person out of a team."""
    from .._models import Record

    teams = session.client.teams
    found = teams.get(teams.find(team).id)
    member = teams.the_one([Record.parse(one) for one in found.members], person)
    session.client.request("DELETE", f"teams/{found.id}/members/{member.id}/")
    _team(session, teams.get(found.id).raw)


@command("rm", parent=teams_command)
@TEAM
@YES
def teams_rm(session: Session, team: str, yes: bool) -> None:
    """Dissolve a team; refused while jobs of it have not ended."""
    found = session.client.teams.find(team)
    sure(f"Dissolve {found.name}?", yes)
    session.client.teams.delete(found.id)
    session.done(f"{found.name} is dissolved.", id=found.id)
