"""Read-only views of people in Django's admin.

The portal's own pages change them and keep the record.
"""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from portal.accounts.models import ApiToken, AuditEntry, Membership, Team, User


class ReadOnlyAdmin:
    """An admin without adding, changing or deleting by hand.

    These rows are written by services alone.
    """

    def has_add_permission(self, *_: Any) -> bool:
        return False

    def has_change_permission(self, *_: Any, **__: Any) -> bool:
        return False

    def has_delete_permission(self, *_: Any, **__: Any) -> bool:
        return False

    def has_view_permission(self, request: HttpRequest, *_: Any) -> bool:
        return bool(getattr(request.user, "is_admin", False))

    def has_module_permission(self, request: HttpRequest) -> bool:
        return bool(getattr(request.user, "is_admin", False))


class ReadOnly(ReadOnlyAdmin, admin.ModelAdmin):  # type: ignore[type-arg]  # generic in the stubs only
    list_per_page = 50
    show_full_result_count = False  # counting a large table costs more than it tells


class Members(ReadOnlyAdmin, admin.TabularInline):  # type: ignore[type-arg]
    model = Membership
    extra = 0


@admin.register(User)
class PersonAdmin(ReadOnly):
    list_display = ("username", "email", "is_staff", "is_active", "last_login", "date_joined")
    list_filter = ("is_staff", "is_active")
    search_fields = ("username", "email")
    exclude = ("password",)


@admin.register(Team)
class TeamAdmin(ReadOnly):
    inlines = (Members,)


@admin.register(ApiToken)
class ApiTokenAdmin(ReadOnly):
    list_display = ("name", "owner", "scope", "created_at", "expires_at", "revoked_at", "last_used_at")
    exclude = ("digest",)


@admin.register(AuditEntry)
class AuditEntryAdmin(ReadOnly):
    list_display = ("at", "actor_name", "node", "action", "target")
    list_filter = ("action",)
    search_fields = ("actor_name", "node", "target")
