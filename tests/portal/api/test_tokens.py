"""Tokens: scopes, expiry, revocation, and that their text is shown once."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from portal.accounts.models import ApiToken, AuditEntry, Scope, User
from portal.accounts.services import create_token
from tests.portal.conftest import token_client


def bearer(text: str) -> APIClient:
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=text)
    return client


@pytest.mark.parametrize(
    "header", ["Bearer", "Bearer x", "Bearer ft-" + "a" * 43, "Bearer a b", "bearer \xff"]
)
def test_a_broken_or_unknown_token_is_refused(header: str, db: None) -> None:
    answer = bearer(header).get("/api/me/")
    assert answer.status_code == 401
    assert "WWW-Authenticate" in answer


def test_an_expired_token_is_refused(person: User) -> None:
    now = timezone.now()
    _, plain = create_token(owner=person, name="old", now=now, expires_at=now + timedelta(seconds=-1))
    assert bearer(f"Bearer {plain}").get("/api/me/").status_code == 401


def test_a_token_of_a_person_who_left_is_refused(person: User, api: APIClient) -> None:
    User.objects.update(is_active=False)
    assert api.get("/api/me/").status_code == 401


def test_a_revoked_token_ends_at_once(api: APIClient) -> None:
    token = api.get("/api/tokens/").json()["data"][0]
    assert api.delete(f"/api/tokens/{token['id']}/").status_code == 204
    assert api.get("/api/me/").status_code == 401


def test_a_read_token_reads_only(person: User) -> None:
    client = token_client(person, Scope.READ)
    assert client.get("/api/jobs/").status_code == 200
    refused = client.post("/api/jobs/", {}, format="json")
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "permission_denied")


def test_a_new_token_works_and_only_its_digest_is_kept(api: APIClient) -> None:
    made = api.post("/api/tokens/", {"name": "ci", "scope": "read"}, format="json")
    assert made.status_code == 201
    plain = made.json()["token"]
    assert bearer(f"Bearer {plain}").get("/api/me/").status_code == 200
    assert plain not in str(list(ApiToken.objects.values()))
    assert plain not in str(list(AuditEntry.objects.values()))
    assert plain not in api.get("/api/tokens/").content.decode()


def test_a_token_cannot_make_a_greater_one(api: APIClient) -> None:
    answer = api.post("/api/tokens/", {"name": "more", "scope": "admin"}, format="json")
    assert answer.status_code == 403


def test_a_token_cannot_outlive_itself_through_another(person: User) -> None:
    now = timezone.now()
    _, plain = create_token(owner=person, name="short", now=now, expires_at=now + timedelta(hours=1))
    client = bearer(f"Bearer {plain}")
    assert client.post("/api/tokens/", {"name": "for ever"}, format="json").status_code == 403


def test_tokens_of_others_do_not_exist(api: APIClient, stranger: APIClient) -> None:
    token = api.get("/api/tokens/").json()["data"][0]
    assert stranger.delete(f"/api/tokens/{token['id']}/").status_code == 404


def test_use_is_noted(api: APIClient) -> None:
    api.get("/api/me/")
    assert ApiToken.objects.get().last_used_at is not None


def test_audit_entries_never_change(person: User) -> None:
    create_token(owner=person, name="x", now=timezone.now())
    entry = AuditEntry.objects.get()
    with pytest.raises(TypeError, match="never changed"):
        entry.save()
    with pytest.raises(TypeError, match="never deleted"):
        entry.delete()
