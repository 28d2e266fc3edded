"""Parsing of the messages between node and portal.

Standard library only; both sides use it. Unknown extra fields are ignored (an agent may be newer or older
than the portal); missing or wrong ones raise `ProtocolError` with the field's path.
"""

from trainer.protocol_parsing.facts import (
    MOST_GROUPS,
    device_of,
    parse_facts,
    parse_link_tests,
    parse_site,
    parse_speed_test,
)
from trainer.protocol_parsing.files import parse_file, safe_path
from trainer.protocol_parsing.messages import parse_enrol, parse_sync
from trainer.protocol_parsing.replies import parse_reply, parse_spec

__all__ = [
    "MOST_GROUPS",
    "device_of",
    "parse_enrol",
    "parse_facts",
    "parse_file",
    "parse_link_tests",
    "parse_reply",
    "parse_site",
    "parse_spec",
    "parse_speed_test",
    "parse_sync",
    "safe_path",
]
