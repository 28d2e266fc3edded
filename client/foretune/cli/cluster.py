"""The cluster: nodes, queue, catalogue, people."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any

import click

from .base import Session, command, named, note, pairs
from .jobs import columns, shown_owner

NODE = click.argument("node")
Columns = Mapping[str, Callable[[Any], str]]


@click.group("nodes")
def nodes_command() -> None:
    """Nodes, the machines with the GPUs."""


@command("ls", parent=nodes_command)
@click.option("--state", help="Only nodes in this state.")
def nodes_ls(session: Session, state: str | None) -> None:
    """List nodes."""
    _list(
        session,
        "nodes",
        {
            "name": lambda node: node["name"],
            "state": lambda node: node["state"],
            ">free": lambda node: f"{node['free_gpus']}/{len(node['gpus'])}",
            "~gpus": lambda node: ", ".join(dict.fromkeys(gpu["model"] for gpu in node["gpus"])),
            ">price": lambda node: (
                "" if node["price_per_gpu_hour"] is None else f"{node['price_per_gpu_hour']:g}"
            ),
            "id": lambda node: node["id"],
        },
        none="No nodes yet; `foretune nodes join` shows how to add one.",
        state=state,
    )


@command("show", parent=nodes_command)
@NODE
def nodes_show(session: Session, node: str) -> None:
    """Show one node."""
    from .._tables import moment, size

    found = session.client.nodes.find(node).raw
    session.show(
        found,
        lambda: pairs(
            [
                ("node", f"{found['name']} ({found['id']})"),
                ("state", found["state"]),
                ("reason", found["reason"] or ""),
                (
                    "machine",
                    f"{found['hostname']}, {found['cores']} cores, {size(found['memory_bytes'] or 0)}",
                ),
                ("price", _price(found)),
                ("last seen", moment(found["last_seen_at"])),
                *(
                    (f"gpu {gpu['index']}", f"{gpu['model']}, {'busy' if gpu['busy'] else 'free'}")
                    for gpu in found["gpus"]
                ),
            ]
        ),
    )


def _price(node: Mapping[str, Any]) -> str:
    return "" if node["price_per_gpu_hour"] is None else f"{node['price_per_gpu_hour']:g}"


def _node_verb(name: str, help_text: str, done: str) -> None:
    @command(name, parent=nodes_command, help_text=help_text)
    @NODE
    @click.option("--reason", default="", help="Why, for those who look at the node.")
    def verb(session: Session, node: str, reason: str) -> None:
        found = session.client.nodes.find(node)
        body = {"reason": reason} if reason else {}
        answer = session.client.request("POST", f"nodes/{found.id}/{name}/", json=body, harmless=True)
        session.show(answer, lambda: f"{found.name} {done}")


_node_verb("drain", "Give a node no new jobs; those that run end there.", "takes no more jobs")
_node_verb("resume", "Let a node take jobs again.", "takes jobs again")


@command("price", parent=nodes_command)
@NODE
@click.argument("price", type=click.FloatRange(min=0))
def nodes_price(session: Session, node: str, price: float) -> None:
    """Set what an hour of one of its GPUs costs."""
    found = session.client.nodes.find(node)
    body = {"price_per_gpu_hour": price}
    answer = session.client.request("PATCH", f"nodes/{found.id}/", json=body)
    session.show(answer, lambda: f"{found.name}: {price:g} per GPU hour")


@command("join", parent=nodes_command)
def nodes_join(session: Session) -> None:
    """Print the command that makes a machine a node, with a new join token."""
    from .._http import new_key

    answer = session.client.request("POST", "nodes/join-tokens/", json={}, key=new_key())
    session.show(answer, lambda: str(answer.get("command") or answer))


@command("queue")
@click.option("--limit", type=click.IntRange(1, 1000), default=50, show_default=True)
def queue_command(session: Session, limit: int) -> None:
    """Show the jobs that wait and run, of all whom you may see, the oldest first."""
    found = session.client.jobs.list(state="live", order="submitted_at", limit=min(limit, 100))
    shown = {**columns(), "owner": shown_owner, "~waits for": lambda job: (job["wait"] or {}).get("text", "")}
    del shown["ended"], shown["~model"]
    session.rows([job.raw for job in islice(found, limit)], shown, none="No job waits or runs.")


def _list(session: Session, path: str, shown: Columns, *, none: str, **filters: Any) -> None:
    rows = [row.raw for row in getattr(session.client, path).list(**filters)]
    session.rows(rows, shown, none=none)


@command("models")
@click.argument("text", required=False)
def models_command(session: Session, text: str | None) -> None:
    """List the base models, or those with this text in their name."""
    shown: Columns = {
        "model": lambda row: row["id"],
        ">parameters": lambda row: f"{row['parameters']:,}",
        "architecture": lambda row: row["architecture"],
    }
    _list(session, "models", shown, none="No such models.", text=text)


@command("gpus")
@click.argument("text", required=False)
def gpus_command(session: Session, text: str | None) -> None:
    """List the GPU models that predictions know."""
    from .._tables import size

    shown: Columns = {
        "gpu": lambda row: row["name"],
        ">memory": lambda row: size(row["memory_gib"] * 2**30),
    }
    _list(session, "gpus", shown, none="No such GPUs.", text=text)


@command("spending")
@click.option("--since", help="From this moment on, with its offset, e.g. 2027-01-01T00:00:00Z.")
@click.option("--until", help="Up to this moment.")
@click.option("--by", type=click.Choice(["team", "person", "node"]), default="team", show_default=True)
def spending_command(session: Session, since: str | None, until: str | None, by: str) -> None:
    """Show GPU time and cost of the jobs that you may see."""
    answer = session.client.request("GET", "spending/", query={"since": since, "until": until})
    if session.as_json:
        return session.show(answer, str)
    rows = [*answer[f"by_{by}"], {**answer["total"], "name": "all"}]
    names = [name for name in rows[-1] if name not in ("name", "id")]
    shown = {by: lambda row: named(row.get("name") or row.get(by) or row.get("id") or "-")}
    shown |= {f">{name}": _number_of(name) for name in names}
    session.rows(rows, shown, none="Nothing was spent.")
    return note(f"in {answer['currency']}" if answer["currency"] else "no currency is set")


def _number_of(name: str) -> Callable[[Any], str]:
    def shown(row: Mapping[str, Any]) -> str:
        value = row.get(name)
        return f"{value:,.2f}" if isinstance(value, float) else named(value)

    return shown


@command("windows")
def windows_command(session: Session) -> None:
    """List maintenance windows."""
    from .._tables import moment

    shown: Columns = {
        "id": lambda row: str(row["id"]),
        "begins": lambda row: moment(row["begins_at"]),
        "ends": lambda row: moment(row["ends_at"]),
        "~nodes": lambda row: ", ".join(named(node) for node in row["nodes"]),
        "team": lambda row: named(row["team"]) or "nobody",
        "~note": lambda row: row["note"],
    }
    _list(session, "windows", shown, none="No windows.")


@command("teams")
def teams_command(session: Session) -> None:
    """List your teams and who is in them."""
    shown: Columns = {
        "name": lambda row: row["name"],
        "~members": lambda row: ", ".join(member["username"] for member in row["members"]),
        "id": lambda row: str(row["id"]),
    }
    _list(session, "teams", shown, none="You are in no team.")


@command("users")
def users_command(session: Session) -> None:
    """List people, for administrators."""
    shown: Columns = {
        "name": lambda row: row["username"],
        "mail": lambda row: row.get("email") or "",
        "administrator": lambda row: "yes" if row.get("admin") else "",
        "id": lambda row: str(row["id"]),
    }
    _list(session, "users", shown, none="Nobody.")


@command("tokens")
def tokens_command(session: Session) -> None:
    """List your API tokens; they themselves are not kept."""
    from .._tables import moment

    shown: Columns = {
        "name": lambda row: row["name"],
        "scope": lambda row: row["scope"],
        "begins with": lambda row: row["hint"],
        "last used": lambda row: moment(row["last_used_at"]),
        "ends": lambda row: "ended" if row.get("revoked_at") else moment(row["expires_at"]),
        "id": lambda row: str(row["id"]),
    }
    _list(session, "tokens", shown, none="No tokens.")
