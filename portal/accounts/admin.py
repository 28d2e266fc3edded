"""People in Django's admin, until the portal's own pages for them come."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.auth.admin import UserAdmin
from django.http import HttpRequest

from portal.accounts.models import ApiToken, AuditEntry, Membership, Team, User

admin.site.register(User, UserAdmin)


class Members(admin.TabularInline):  # type: ignore[type-arg]  # generic in the stubs only
    model = Membership
    extra = 1


@admin.register(Team)
class TeamAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    inlines = (Members,)


class ReadOnly(admin.ModelAdmin):  # type: ignore[type-arg]
    """Looking only: these rows are written by services."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(ApiToken)
class ApiTokenAdmin(ReadOnly):
    list_display = ("name", "owner", "scope", "created_at", "expires_at", "revoked_at", "last_used_at")
    exclude = ("digest",)


@admin.register(AuditEntry)
class AuditEntryAdmin(ReadOnly):
    list_display = ("at", "actor_name", "node", "action", "target")
    list_filter = ("action",)
    search_fields = ("actor_name", "node", "target")
