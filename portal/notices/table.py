"""The one table of channels, each by the name of its folder and of its cursor."""

from __future__ import annotations

from collections.abc import Mapping

from portal.notices.channel import Channel
from portal.notices.log.channel import LogChannel

CHANNELS: Mapping[str, Channel] = {
    "log": LogChannel(),
}
