"""Options of the agent."""

from __future__ import annotations

import argparse
import os
import re
import socket
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from trainer import __version__
from trainer.agent.errors import SetupError
from trainer.agent.executors.table import EXECUTORS
from trainer.agent.portal_url import check_url
from trainer.protocol import NODE_KINDS
from trainer.roots import overlap
from trainer.written import clean_name, decimal, whole

LONGEST_NAME = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings given to an agent.

    command: what starts a training; its folder is appended.
    """

    portal: str
    dir: Path
    name: str = ""
    join_token: str = ""
    slots: int | None = None
    topology: Path | None = None
    ca: Path | None = None
    offline: bool = True
    models_limit_bytes: int | None = None
    model_roots: Sequence[Path] = ()
    executor: str = "process"
    user: str = "nobody"
    address: str = ""
    ports: Sequence[int] = (0,)
    speed_test: bool = False
    kind: str = ""
    market: str = ""
    notice: str = ""
    stop_grace_s: float = 10.0
    lease_stop_s: float = 900.0
    command: Sequence[str] = (sys.executable, "-m", "trainer.run")


def read_settings(arguments: Sequence[str] | None = None) -> Settings:
    """Read the settings from the command line.

    Raises SetupError naming the option that is wrong.
    """
    given = _parser().parse_args(arguments)
    if given.slots is not None and not 1 <= given.slots <= 1024:
        raise SetupError("--slots must be between 1 and 1024")
    if given.models_limit is not None and not given.online:
        raise SetupError("--models-limit deletes what can be downloaded again: it goes with --online")
    if given.join and given.join_file:
        raise SetupError("give --join or --join-file, not both")
    _check_terms(given)
    name = _name(given.name or socket.gethostname())
    return Settings(
        portal=check_url(given.portal),
        dir=given.dir,
        name=name,
        join_token=given.join or _join_token(given.join_file),
        slots=given.slots,
        topology=given.topology,
        ca=given.ca,
        offline=not given.online,
        models_limit_bytes=None if given.models_limit is None else int(given.models_limit * 2**30),
        model_roots=_model_roots(given.model_roots, given.dir),
        executor=given.executor,
        user=given.user,
        address=given.address or "",
        ports=given.ports,
        speed_test=not given.no_speed_test,
        kind=given.kind or "",
        market=given.market or "",
        notice=given.notice or "",
        stop_grace_s=given.stop_grace,
        lease_stop_s=given.lease_stop,
    )


def _check_terms(given: argparse.Namespace) -> None:
    """Raise SetupError where --kind, --market and --notice do not go together."""
    if given.kind == "spot" and not given.market:
        raise SetupError("--kind spot needs --market NAME: where this machine was rented")
    if given.market and given.kind not in ("spot", "on_demand"):
        raise SetupError("--market goes with --kind spot or --kind on_demand")
    if given.market and len(given.market) > LONGEST_NAME:
        raise SetupError(f"--market must have at most {LONGEST_NAME} characters")
    if given.notice and given.kind != "spot":
        raise SetupError("--notice goes with --kind spot: no other machine is taken back")


def _model_roots(roots: Sequence[Path], folder: Path) -> tuple[Path, ...]:
    """Return the model roots.

    Raises SetupError for a relative root, and for one that would show jobs each other's runs.
    """
    for root in roots:
        if not root.is_absolute():
            raise SetupError(f"--model-roots {root} must be an absolute path")
        if overlap(root, folder):
            raise SetupError(
                f"--model-roots {root} must lie apart from the agent's own folder, --dir {folder}"
            )
    return tuple(roots)


def _join_token(file: Path | None) -> str:
    """Return the join token from a file or FORETUNE_JOIN_TOKEN.

    The command line is not used: other users of the machine can read it.
    """
    if file is None:
        return os.environ.pop("FORETUNE_JOIN_TOKEN", "")
    try:
        return file.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise SetupError(f"--join-file {file} cannot be read: {error}") from None


def _seconds(text: str) -> float:
    value = decimal(text)
    if not 0 < value <= 86400:
        raise argparse.ArgumentTypeError("must be more than 0 and at most 86400 seconds")
    return value


def _gib(text: str) -> float:
    value = decimal(text)
    if not 0 < value <= 1_000_000:
        raise argparse.ArgumentTypeError("must be more than 0 and at most 1000000 GiB")
    return value


def _ports(text: str) -> range:
    found = re.fullmatch("([0-9]{1,5})(?:-([0-9]{1,5}))?", text)
    ports = range(int(found[1]), int(found[2] or found[1]) + 1) if found else range(0)
    if not ports or not 1 <= ports[0] <= ports[-1] <= 65535:
        raise argparse.ArgumentTypeError("must be a port or a range like 29500-29599, from 1 to 65535")
    return ports


def _address(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9._-]{1,253}|[0-9a-fA-F:.]{2,45}", text):
        raise argparse.ArgumentTypeError("must be a host's name or address, without a port")
    return text


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="foretune-node", description="Offer this machine to a Foretune portal and train on it."
    )
    parser.add_argument("--version", action="version", version=f"foretune-node {__version__}")
    parser.add_argument("--portal", required=True, metavar="URL", help="https://portal.example.org")
    parser.add_argument("--join", metavar="TOKEN", help="join token, at the first start only")
    parser.add_argument("--join-file", type=Path, metavar="FILE", help="read the join token from a file")
    parser.add_argument("--dir", type=Path, default=Path("var/node"), help="the agent's folder (var/node)")
    parser.add_argument("--slots", type=whole, metavar="N", help="CPU slots to offer (cores - 1)")
    parser.add_argument(
        "--topology",
        type=Path,
        metavar="FILE",
        help="JSON list that says where each GPU or slot sits (what the driver says)",
    )
    parser.add_argument("--name", help="the node's name (this host's name)")
    parser.add_argument("--ca", type=Path, metavar="FILE", help="certificates to check the portal with")
    parser.add_argument("--online", action="store_true", help="let trainings download models from the hub")
    parser.add_argument(
        "--models-limit",
        type=_gib,
        metavar="GIB",
        help="delete downloaded models beyond this, those unused for the longest time first (no limit)",
    )
    parser.add_argument(
        "--model-roots",
        type=Path,
        nargs="+",
        default=(),
        metavar="DIR",
        help="folders of base models that jobs may name by their absolute path (none)",
    )
    _add_terms(parser)
    _add_trainings(parser)
    return parser


def _add_terms(parser: argparse.ArgumentParser) -> None:
    """Add the options of a machine that is rented."""
    parser.add_argument("--kind", choices=NODE_KINDS, help="on what terms this machine is here (owned)")
    parser.add_argument("--market", metavar="NAME", help="where it was rented, by its name at the portal")
    parser.add_argument(
        "--notice",
        metavar="COMMAND|FILE",
        help="how a spot machine hears that it is taken back: a command that ends with 0 then, or a file that"
        " is there then; what it says first is the seconds that are left (120)",
    )


def _add_trainings(parser: argparse.ArgumentParser) -> None:
    """Add the options of trainings.

    They are the executor, the user, the meeting point of several nodes, and when trainings
    stop.
    """
    parser.add_argument(
        "--executor", default="process", choices=EXECUTORS, help="what runs trainings (process)"
    )
    parser.add_argument(
        "--user",
        default="nobody",
        metavar="NAME,...",
        help="user of trainings if the agent is root: the first who can read what they need (nobody)",
    )
    parser.add_argument(
        "--address",
        type=_address,
        metavar="HOST",
        help="where other nodes reach this one (the address that its connections to the portal come from)",
    )
    parser.add_argument(
        "--ports",
        type=_ports,
        default=(0,),
        metavar="LOW-HIGH",
        help="where trainings over several nodes meet (any free port)",
    )
    parser.add_argument(
        "--no-speed-test",
        action="store_true",
        help="measure neither training steps nor links before the node joins; first jobs are promised from"
        " data sheets",
    )
    parser.add_argument(
        "--stop-grace",
        type=_seconds,
        default=10.0,
        metavar="S",
        help="time for trainings to save when the agent is stopped (10)",
    )
    parser.add_argument(
        "--lease-stop",
        type=_seconds,
        default=900.0,
        metavar="S",
        help="stop all trainings after this long without the portal (900)",
    )


def _name(text: str) -> str:
    """The node's name. Raises SetupError."""
    if len(text) > LONGEST_NAME:
        raise SetupError(f"--name must have at most {LONGEST_NAME} characters")
    try:
        return clean_name(text)
    except ValueError as wrong:
        raise SetupError(f"--name {text!r}: {wrong}") from wrong
