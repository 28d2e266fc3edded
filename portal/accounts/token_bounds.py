"""What a token is bound to, and what it may pass on to another one."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings

from portal.accounts.errors import InvalidValue, NotAllowed
from portal.accounts.models import ApiToken, Scope, Team

MOST_NETWORKS = 20
MAPPED_BITS = 96  # before an IPv4 address within IPv6
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a token may do, for which team, from where and until when.

    None and () bind it to nothing.
    """

    scope: Scope = Scope.WRITE
    team: Team | None = None
    networks: tuple[str, ...] = ()
    expires_at: datetime | None = None

    @classmethod
    def of(cls, token: ApiToken) -> Bounds:
        return cls(Scope(token.scope), token.team, tuple(token.networks), token.expires_at)


def clean_networks(texts: Iterable[str]) -> tuple[str, ...]:
    """Return addresses and ranges in one form.

    Raises InvalidValue naming the one that is neither.
    """
    networks: dict[str, None] = {}
    for text in texts:
        try:
            networks[str(_as_told(ipaddress.ip_network(text.strip(), strict=False)))] = None
        except ValueError as wrong:
            example = "an address or a range, such as 10.1.0.0/16 or 2001:db8::/48"
            raise InvalidValue("networks", f"{text.strip()[:60]!r} is not {example}") from wrong
    if len(networks) > MOST_NETWORKS:
        raise InvalidValue("networks", f"at most {MOST_NETWORKS} ranges; join some of them")
    return tuple(networks)


def _as_told(network: Network) -> Network:
    """A range as `is_inside` compares it: one of IPv4 within IPv6 is one of IPv4."""
    begin = getattr(network.network_address, "ipv4_mapped", None)
    if begin is None or network.prefixlen < MAPPED_BITS:
        return network
    return ipaddress.ip_network((begin, network.prefixlen - MAPPED_BITS))


def is_inside(address: str, networks: Iterable[str]) -> bool:
    """Is the address in one of the networks, or are there none?

    IPv4 within IPv6 counts as IPv4.
    """
    ranges = [ipaddress.ip_network(text) for text in networks]
    if not ranges:
        return True
    try:
        place = ipaddress.ip_address(address)
    except ValueError:  # a Unix socket has none
        return False
    place = getattr(place, "ipv4_mapped", None) or place
    return any(place in one for one in ranges)


def usual_end(now: datetime) -> datetime:
    """The end of a token for which nobody names one."""
    days = min(settings.TOKEN_DAYS, settings.TOKEN_MAX_DAYS or settings.TOKEN_DAYS)
    return now + timedelta(days=days)


def latest_end(now: datetime) -> datetime | None:
    """The latest end that a token may have here; None: it may go on for ever."""
    return now + timedelta(days=settings.TOKEN_MAX_DAYS) if settings.TOKEN_MAX_DAYS else None


def check_end(expires_at: datetime | None, now: datetime) -> None:
    """Raises InvalidValue for an end that is later than an administrator allows."""
    latest = latest_end(now)
    if latest is not None and (expires_at is None or expires_at > latest):
        most = settings.TOKEN_MAX_DAYS
        raise InvalidValue("expires_at", f"tokens live {most} days at most here; rotate them in time")


def refuse_greater(own: ApiToken | None, wanted: Bounds) -> None:
    """A token makes none that may do more than itself; sessions (None) make any.

    Raises NotAllowed.
    """
    if own is None:
        return
    if not Scope(own.scope).includes(wanted.scope):
        raise NotAllowed(f"A token of the scope {own.scope} cannot make one of {wanted.scope}.")
    if own.expires_at and (wanted.expires_at is None or wanted.expires_at > own.expires_at):
        raise NotAllowed(f"A token cannot make one that lives longer; set expires_at by {own.expires_at}.")
    if own.team_id and (wanted.team is None or wanted.team.pk != own.team_id):
        raise NotAllowed("A token that is bound to a team makes only tokens for that team; name it as team.")
    if own.networks and not (wanted.networks and all(_within(one, own.networks) for one in wanted.networks)):
        ranges = ", ".join(own.networks)
        raise NotAllowed(f"A token that is bound to addresses makes only tokens within {ranges}.")


def _within(text: str, networks: Iterable[str]) -> bool:
    network = ipaddress.ip_network(text)
    wider = [ipaddress.ip_network(one) for one in networks]
    # mypy knows that the two are of one version only where it sees both types
    return any(
        network.version == one.version and network.subnet_of(one)  # type: ignore[arg-type]
        for one in wider
    )
