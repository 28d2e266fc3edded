"""Names of what the audit record is about, which itself holds ids."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from portal.accounts.models import ApiToken, Team, User
from scheduler.models import Calibration, Claim, DatasetFile, Job, Market, Node, Simulation


def names_of(targets: Iterable[str]) -> dict[str, str]:
    """Return names by target, of all that is still known and has one.

    Targets are jobs and their claims, nodes, files, teams, tokens, markets and, by number, people. A
    simulation is named by its policies, a calibration by its node.
    """
    wanted = set(targets)
    teams, tokens = _numbers("team", wanted), _numbers("token", wanted)
    claims = {UUID(target.removeprefix("claim ")) for target in wanted if target.startswith("claim ")}
    markets, people = _numbers("market", wanted), _numbers("user", wanted)
    found = dict(Node.objects.filter(pk__in=wanted).values_list("pk", "name"))
    found |= dict(DatasetFile.objects.filter(pk__in=wanted).values_list("pk", "filename"))
    found |= {f"team {team.pk}": team.name for team in Team.objects.filter(pk__in=teams)}
    found |= {f"market {market.pk}": market.name for market in Market.objects.filter(pk__in=markets)}
    found |= {f"user {user.pk}": user.get_username() for user in User.objects.filter(pk__in=people)}
    found |= {job.pk: str(job) for job in Job.objects.filter(pk__in=wanted).only("name")}
    found |= {f"token {token.pk}": token.name for token in ApiToken.objects.filter(pk__in=tokens)}
    found |= {sim.pk: ", ".join(sim.policies) for sim in Simulation.objects.filter(pk__in=wanted)}
    found |= dict(Calibration.objects.filter(pk__in=wanted).values_list("pk", "node__name"))
    for claim in Claim.objects.filter(pk__in=claims).select_related("attempt__job"):
        found[f"claim {claim.pk}"] = str(claim.attempt.job)
    return found


def _numbers(kind: str, targets: Iterable[str]) -> set[int]:
    numbers = (target.removeprefix(f"{kind} ") for target in targets if target.startswith(f"{kind} "))
    return {int(number) for number in numbers if number.isdecimal()}
