"""The cluster: nodes, queue, catalogue, people."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Any

import click

from .base import Columns, Session, command, list_rows, named, pairs
from .jobs import columns, shown_owner

NODE = click.argument("node")


@click.group("nodes")
def nodes_command() -> None:
    """Nodes, the machines with the GPUs."""


@command("ls", parent=nodes_command)
@click.option("--state", help="Only nodes in this state.")
def nodes_ls(session: Session, state: str | None) -> None:
    """List nodes."""
    list_rows(
        session,
        session.client.nodes,
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


def _node_verb(name: str, help_text: str, done: str, also: Callable[[Any], Any]) -> None:
    @command(name, parent=nodes_command, help_text=help_text)
    @NODE
    @click.option("--reason", default="", help="Why, for those who look at the node.")
    @also
    def verb(session: Session, node: str, reason: str, **flags: bool) -> None:
        found = session.client.nodes.find(node)
        body = {
            **({"reason": reason} if reason else {}),
            **{flag: True for flag, set_ in flags.items() if set_},
        }
        answer = session.client.nodes.act(found.id, name, **body)
        session.show(answer.raw, lambda: f"{found.name} {done}")


_node_verb(
    "drain",
    "Give a node no new jobs; those that run end there.",
    "takes no more jobs",
    click.option("--move-jobs", is_flag=True, help="Its jobs go on elsewhere, from a checkpoint."),
)
_node_verb(
    "resume",
    "Let a node take jobs again.",
    "takes jobs again",
    click.option("--take-over-gpus", is_flag=True, help="Its GPUs are as they are now."),
)


@command("price", parent=nodes_command)
@NODE
@click.argument("price", type=click.FloatRange(min=0))
def nodes_price(session: Session, node: str, price: float) -> None:
    """Set what an hour of one of its GPUs costs."""
    found = session.client.nodes.find(node)
    answer = session.client.nodes.change(found.id, price_per_gpu_hour=price)
    session.show(answer.raw, lambda: f"{found.name}: {price:g} per GPU hour")


@command("join", parent=nodes_command)
@click.option("--uses", type=click.IntRange(1, 1000), default=1, show_default=True, help="For so many nodes.")
@click.option("--hours", type=click.IntRange(1, 168), default=1, show_default=True, help="For so long.")
def nodes_join(session: Session, uses: int, hours: int) -> None:
    """Print the command that makes a machine a node, with a new join token."""
    from .._errors import Unreachable
    from .._http import new_key

    asked = {"uses": uses, "lifetime_s": hours * 3600}
    answer = session.client.request("POST", "nodes/join-tokens/", json=asked, key=new_key())
    if answer["join_token"] is None:
        raise Unreachable("The answer with the token was lost: ask once more.")
    session.show(answer, lambda: str(answer["command"] or answer["join_token"]))


@command("queue")
@click.option("--limit", type=click.IntRange(1, 1000), default=50, show_default=True)
def queue_command(session: Session, limit: int) -> None:
    """Show the jobs that wait and run, of all whom you may see, the oldest first."""
    found = session.client.jobs.list(state="live", order="submitted_at", limit=min(limit, 100))
    shown = {**columns(), "owner": shown_owner, "~waits for": lambda job: (job["wait"] or {}).get("text", "")}
    del shown["ended"], shown["~model"]
    session.rows([job.raw for job in islice(found, limit)], shown, none="No job waits or runs.")


@command("models")
@click.argument("text", required=False)
def models_command(session: Session, text: str | None) -> None:
    """List the base models, or those with this text in their name."""
    shown: Columns = {
        "model": lambda row: row["id"],
        ">parameters": lambda row: f"{row['parameters']:,}",
        "architecture": lambda row: row["architecture"],
    }
    list_rows(session, session.client.models, shown, none="No such models.", text=text)


@command("gpus")
@click.argument("text", required=False)
def gpus_command(session: Session, text: str | None) -> None:
    """List the GPU models that predictions know."""
    from .._tables import size

    shown: Columns = {
        "gpu": lambda row: row["name"],
        ">memory": lambda row: size(row["memory_gib"] * 2**30),
    }
    list_rows(session, session.client.gpus, shown, none="No such GPUs.", text=text)


@command("spending")
@click.option("--since", help="From this moment on, with its offset, e.g. 2027-01-01T00:00:00Z.")
@click.option("--until", help="Up to this moment.")
@click.option("--by", type=click.Choice(["team", "person", "node"]), default="team", show_default=True)
def spending_command(session: Session, since: str | None, until: str | None, by: str) -> None:
    """Show GPU time and cost of the jobs that you may see."""
    answer = session.client.request("GET", "spending/", query={"since": since, "until": until})
    if session.as_json:
        return session.show(answer, str)
    from .._tables import figure

    rows = [*answer[f"by_{by}"], {**answer["total"], "name": "all"}]
    shown: Columns = {
        by: lambda row: named(row["name"]) or "none",
        ">jobs": lambda row: f"{row['jobs']:,}",
        ">GPU hours": lambda row: f"{row['gpu_s'] / 3600:,.2f}",
        ">cost": lambda row: figure("cost", row["cost"], answer["currency"]),
        "": lambda row: "estimated" if row["estimated"] else "",
    }
    return session.rows(rows, shown, none="Nothing was spent.")


@click.group("windows")
def windows_command() -> None:
    """Maintenance windows, in which nodes are closed."""


@command("ls", parent=windows_command)
def windows_ls(session: Session) -> None:
    """List the windows that have not ended."""
    from .._tables import moment

    shown: Columns = {
        "id": lambda row: row["id"],
        "begins": lambda row: moment(row["begins_at"]),
        "ends": lambda row: moment(row["ends_at"]),
        "~nodes": lambda row: ", ".join(row["nodes"]),
        "for": lambda row: named(row["team"]) or ("a team" if row["reserved"] else "nobody"),
        "~note": lambda row: row["note"],
    }
    list_rows(session, session.client.windows, shown, none="No windows.")


@command("make", parent=windows_command)
@click.argument("nodes", nargs=-1, required=True, metavar="NODE...")
@click.option("--begins", required=True, metavar="MOMENT", help="E.g. 2027-01-01T00:00:00+01:00.")
@click.option("--ends", required=True, metavar="MOMENT", help="When the nodes open again.")
@click.option("--team", help="The only one whose jobs may use them; else nobody's may.")
@click.option("--note", "text", default="", help="Why, for those whose jobs wait.")
def windows_make(
    session: Session, nodes: Sequence[str], begins: str, ends: str, team: str | None, text: str
) -> None:
    """Close nodes during a time, as an administrator."""
    closed = [session.client.nodes.find(node).id for node in nodes]
    asked = {"begins_at": begins, "ends_at": ends, "nodes": closed, "note": text}
    made = session.client.windows.create(**asked, **({"team": team} if team else {})).raw
    session.show(made, lambda: str(made["id"]))


@command("rm", parent=windows_command)
@click.argument("window")
def windows_rm(session: Session, window: str) -> None:
    """Open the nodes again, or do not close them."""
    session.client.windows.delete(window)
    session.done(f"{window} is removed.", id=window)
