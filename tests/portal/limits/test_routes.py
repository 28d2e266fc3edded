"""A crowd cannot pass for many routes by naming many things."""

from __future__ import annotations

import re

from portal.http.routes import UNKNOWN, route_of
from tests.portal.access.addresses import all_addresses, routes

GAP = re.compile(r"\{\w+\}")


def test_every_address_belongs_to_one_route_whatever_it_names() -> None:
    found = {address: route_of(GAP.sub("7", address)) for address in all_addresses()}
    assert found == {address: route_of(GAP.sub("77", address)) for address in all_addresses()}
    assert UNKNOWN not in found.values()
    assert len(set(found.values())) == len(routes())


def test_what_no_route_serves_shares_one() -> None:
    assert {route_of(path) for path in ("/static/a.css", "/nothing/", "/%E2%82%AC", "/%00")} == {UNKNOWN}
