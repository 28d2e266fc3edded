"""Numbers in forms and addresses: ASCII digits alone, in every field of a number."""

from __future__ import annotations

import pytest
from django.core.exceptions import ValidationError
from django.test import Client

from portal.accounts.models import Team, User
from portal.web.common.number_fields import NumberField, NumberList, WholeNumberField
from scheduler.models import PersonLimit, TeamQuota
from tests.harness import world
from tests.portal.conftest import Program

ODD = ("1_000", "١٠", "１０", "1 000", "1,000", "0x10", "१", "①", "²", "1e", "--1", "ten", "😀")


@pytest.mark.parametrize("text", [*ODD, "1.5", "1e3", "9" * 5000])
def test_no_whole_number(text: str) -> None:
    with pytest.raises(ValidationError, match="Enter a whole number in the digits 0 to 9"):
        WholeNumberField().clean(text)


@pytest.mark.parametrize("text", [*ODD, "0,5", "nan", "inf", "-Infinity", "1e1_0", "."])
def test_no_number(text: str) -> None:
    with pytest.raises(ValidationError, match="Enter a number in the digits 0 to 9"):
        NumberField().clean(text)
    with pytest.raises(ValidationError, match="Enter a number in the digits 0 to 9"):
        NumberList().clean(f"1;{text}")


def test_numbers() -> None:
    whole, number = WholeNumberField(required=False), NumberField(required=False)
    read = [whole.clean(text) for text in ("12", " +3 ", "-4", "5.0", "", "  ")]
    assert read == [12, 3, -4, 5, None, None]
    read_too = [number.clean(text) for text in ("0.5", ".5", "5.", "1e-4", "-2E+3", "")]
    assert read_too == [0.5, 0.5, 5.0, 1e-4, -2000.0, None]
    assert NumberList(required=False).clean("3600, 36e3,") == [3600.0, 36000.0]
    with pytest.raises(ValidationError, match="Enter a smaller number"):
        number.clean("1e999")


@pytest.mark.parametrize("odd", ["1_000", "١٠", "１０"])
@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("/teams/{team}/quota/", {"guaranteed": "1", "borrow_limit": "1", "lending_limit": "1"}),
        ("/users/limits/", {"running_jobs": "1", "gpus": "1", "gpu_hours_month": "1", "max_run_s": "1"}),
        ("/teams/{team}/share/", {"weight": "1"}),
        ("/nodes/{node}/price/", {"price": "1"}),
        ("/policy/", {"tiresias.limits_gpu_s": "3600", "tiresias.limit": "3"}),
    ],
)
def test_each_number_of_a_form_is_told_at_its_field(
    admin_browser: Client, admin: User, path: str, fields: dict[str, str], odd: str
) -> None:
    node, team = world.fake_node(), Team.objects.create(name="Linguists")
    others = {"max_class": "0", "name": "tiresias", "reason": "why", "seen": "0"}
    address = path.format(team=team.pk, node=node.node_id)
    for name in fields:
        answer = admin_browser.post(address, {**others, **fields, name: odd})
        assert answer.status_code == 400, name
        assert "in the digits 0 to 9" in answer.content.decode(), name
    assert not TeamQuota.objects.exists()
    assert not PersonLimit.objects.exists()


@pytest.mark.parametrize("odd", ["1_0", "١٠", "１０"])
def test_numbers_and_times_of_an_address_are_ascii(api: Program, odd: str) -> None:
    for address in (f"/api/jobs/?limit={odd}", f"/api/jobs/{world.job().pk}/logs/?offset={odd}"):
        answer = api.get(address)
        assert answer.status_code in (400, 404), answer.content
    assert "digits 0 to 9" in api.get(f"/api/jobs/?limit={odd}").json()["error"]["fields"]["limit"]
    answer = api.get("/api/spending/", {"since": f"2026-11-{odd}T00:00:00Z"})
    assert answer.status_code == 400


@pytest.mark.parametrize("odd", ["٢٠٣٠-٠١-٠١T٠٠:٠٠", "２０３０-01-01T00:00"])
def test_moments_of_a_form_are_ascii(admin_browser: Client, odd: str) -> None:
    node = world.fake_node()
    sent = {"begins_at": odd, "ends_at": "2031-01-02T00:00", "nodes": node.node_id}
    answer = admin_browser.post("/windows/", sent)
    assert answer.status_code == 400
    assert "Enter a date and a time in the digits 0 to 9" in answer.content.decode()
