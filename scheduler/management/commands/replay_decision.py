"""Make decisions again from what was kept of them."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterator
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from knowledge.core.domain.wording import counted
from scheduler.models import Decision
from scheduler.selectors.decisions import UnreadableDecision, replay_decision
from trainer.written import whole

LARGEST = 2**63 - 1  # of a row's number


class Command(BaseCommand):
    help = "Let the policy decide again from the kept input; fails unless every plan is identical."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "ids", nargs="*", type=whole, metavar="ID", help="of a decision, as a job's page names it"
        )
        parser.add_argument("--all", action="store_true", help="every decision that is kept, oldest first")

    def handle(self, *, ids: list[int], **options: Any) -> None:
        if bool(ids) == options["all"]:
            raise CommandError("Name decisions by their numbers, or give --all.")
        checked = failed = 0
        for decision in _decisions(ids):
            checked += 1
            failed += not self._replay(decision)
        if failed:
            raise CommandError(f"{counted(failed, 'decision')} of {checked:,} came out otherwise.")
        if options["all"]:
            self.stdout.write(f"{counted(checked, 'decision')}, all identical.")

    def _replay(self, decision: Decision) -> bool:
        """Whether the plan is identical."""
        name = f"Decision {decision.pk} ({decision.policy}, {decision.at:%Y-%m-%d %H:%M:%S} UTC)"
        try:
            found = replay_decision(decision)
        except UnreadableDecision as wrong:
            self.stdout.write(
                f"{name}: cannot be made again. {wrong} It was made by release {decision.release}."
            )
            return False
        verdict = f"identical, {counted(found.actions, 'action')}" if not found.differences else "differs"
        self.stdout.write(f"{name}: {verdict}")
        for difference in found.differences:
            self.stdout.write(f"  {difference}")
        return not found.differences


def _decisions(ids: list[int]) -> Iterator[Decision]:
    known = Decision.objects.order_by("pk")
    if beyond := [one for one in ids if one > LARGEST]:
        raise CommandError(f"No decision {beyond[0]} is kept: its number is wrong.")
    if missing := sorted(set(ids) - set(known.filter(pk__in=ids).values_list("pk", flat=True))):
        raise CommandError(
            f"No decision {missing[0]} is kept: its number is wrong, or it is older than DECISION_KEEP_DAYS"
            " or DECISION_KEEP_BYTES allow."
        )
    for pk in list((known.filter(pk__in=ids) if ids else known).values_list("pk", flat=True)):
        if found := Decision.objects.filter(pk=pk).first():  # a sweep may have deleted it meanwhile
            yield found
