"""The command `foretune`.

Each group of commands has a file, which is imported when one of them is used.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

import click

from .errors import exit_code_of

GROUPS = {
    "Begin": {
        "login": ("begin", "Sign in to a portal and keep the token."),
        "logout": ("begin", "Forget a profile and its token."),
        "status": ("begin", "Show portal, person, releases and quota."),
        "profile": ("begin", "List, choose and remove profiles."),
        "completion": ("begin", "Print what makes your shell complete commands."),
        "init": ("begin", "Write a job.yaml with comments."),
    },
    "Run": {
        "run": ("run", "Plan, confirm and submit a job."),
        "recommend": ("run", "Show what a job would take, without submitting it."),
        "retry": ("run", "Submit a job once more."),
    },
    "Jobs": {
        "ls": ("jobs", "List your jobs."),
        "show": ("jobs", "Show one job: promise, progress, result."),
        "why": ("jobs", "Say why a job waits, runs where it runs, or failed."),
        "watch": ("jobs", "Follow a job until it has ended."),
        "logs": ("jobs", "Print a job's log."),
        "metrics": ("jobs", "Print what was measured by step."),
        "events": ("jobs", "Print what happened to a job."),
        "cancel": ("jobs", "Cancel jobs."),
        "pause": ("jobs", "Pause jobs, with a checkpoint."),
        "resume": ("jobs", "Let paused jobs go on."),
        "diff": ("jobs", "Compare two jobs."),
        "download": ("jobs", "Download what a job produced."),
        "open": ("jobs", "Open a job's page in the browser."),
    },
    "Data": {"files": ("files", "Training files: put, ls, show, get, rm, check.")},
    "Cluster": {
        "nodes": ("cluster", "Nodes: ls, show, drain, resume, price, join."),
        "queue": ("cluster", "Show the jobs that wait and run."),
        "models": ("cluster", "List the base models."),
        "gpus": ("cluster", "List the GPU models that predictions know."),
        "spending": ("cluster", "Show GPU time and cost by team, person and node."),
        "windows": ("cluster", "Maintenance windows: ls, make, rm."),
        "teams": ("people", "Teams: ls, show, make, add, remove, rm."),
        "users": ("people", "People: ls, show, make, password, deactivate, activate."),
        "tokens": ("people", "API tokens: ls, make, rotate, end."),
        "accounts": ("people", "Service accounts: ls, make, end, activate."),
    },
    "Other": {
        "api": ("other", "Call the REST API and print the answer."),
        "version": ("other", "Print the release of this client."),
    },
}
PLACES = {name: place for commands in GROUPS.values() for name, place in commands.items()}


class Commands(click.Group):
    """Commands by name, each imported from its file when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(PLACES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in PLACES:
            return None
        module = importlib.import_module(f".{PLACES[cmd_name][0]}", __name__)
        command: click.Command = getattr(module, f"{cmd_name}_command")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as wrong:
            import difflib

            if near := difflib.get_close_matches(args[0], PLACES, n=1):
                raise click.UsageError(
                    f"No such command {args[0]!r}; did you mean {near[0]!r}?", ctx
                ) from wrong
            raise

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, commands in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(name, text) for name, (_, text) in commands.items()], col_max=12)


@click.command(
    cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120}
)
def foretune() -> None:
    """Fine-tune language models on your own GPUs.

    Begin with `foretune run -m MODEL -d rows.jsonl --watch`.

    Every command takes --json and --profile. Exit codes: 0 done, 1 the job failed, 2 wrong usage or input,
    3 not signed in or not allowed, 4 not found, 5 portal out of reach, 6 conflict or outdated plan,
    7 --fail-on, 124 --timeout, 130 interrupted (the job goes on).
    """


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        code = foretune.main(given, prog_name="foretune", standalone_mode=False)
    except Exception as error:  # noqa: BLE001 - each has its exit code; what is a mistake of ours is raised
        return exit_code_of(error, as_json="--json" in given)
    except KeyboardInterrupt:
        return 130
    return code if isinstance(code, int) else 0
