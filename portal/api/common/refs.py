"""People, teams and markets wherever an answer tells whose something is."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from portal.accounts.models import Team, User
from portal.accounts.public_ids import public_id
from portal.api.common.ids import IdField
from scheduler.models import Market


class _Ref(serializers.Serializer[Any]):
    id = serializers.SerializerMethodField()

    def get_id(self, row: Team | User) -> str:
        return public_id(row)


class UserRef(_Ref):
    """A person: the id, such as `user-7`, and the name."""

    name = serializers.CharField(source="username")


class TeamRef(_Ref):
    """A team: the id, such as `team-7`, and the name."""

    name = serializers.CharField()


class MarketRef(serializers.ModelSerializer[Market]):
    """A market: the id, such as `mkt-7`, and the name."""

    id = IdField(Market)

    class Meta:
        model = Market
        fields = ["id", "name"]
