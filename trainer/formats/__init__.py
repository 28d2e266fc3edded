"""Formats of training data: JSON Lines in the formats that `recognise` names.

Standard library only. The portal calls `check` at upload, the trainer reads with `rows`; both
go through `parse_row`. A field is understood, refused with a remedy, or named among those not
used; none is dropped in silence.
"""

from trainer.formats.file import FileFacts, check, rows
from trainer.formats.lines import FormatError, LineError
from trainer.formats.recognise import parse_row
from trainer.formats.rows import Chat, Message, PromptCompletion, Row, Text, ToolCall
from trainer.formats.unused import Unused

__all__ = [
    "Chat",
    "FileFacts",
    "FormatError",
    "LineError",
    "Message",
    "PromptCompletion",
    "Row",
    "Text",
    "ToolCall",
    "Unused",
    "check",
    "parse_row",
    "rows",
]
