"""Source trees and their readings: what is kept of an upload, and for how long."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import QuerySet

from knowledge.language.consent import server_for
from knowledge.language.server import ChatServer
from knowledge.models import ModelState, ScriptReading, SourceTree
from knowledge.reading.agent.merging import merged, open_fields
from knowledge.reading.manifest import MOST_BYTES, ScriptManifest
from knowledge.reading.reader import read
from knowledge.reading.stored_form import from_stored, to_stored, value_of, value_row
from knowledge.reading.types import FieldValue, Reading, Tree
from knowledge.reading.versions import carried, equal_files, file_digests, reader_version, tree_digest
from portal.accounts.models import User

MOST_TREES = 20  # of a person; older ones go
KEEP_TEXTS, KEEP_READINGS = timedelta(days=30), timedelta(days=90)
ANSWERS_WITHIN = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class KeptReading:
    """A reading with its files and the row that keeps it."""

    row: ScriptReading
    reading: Reading
    manifest: ScriptManifest

    @property
    def is_awaited(self) -> bool:
        """Is a language model still reading?"""
        return self.row.model_state in (ModelState.ASKED, ModelState.READING)


def read_upload(*, owner: User, manifest: ScriptManifest, command: str, now: datetime) -> KeptReading:
    """Read files and a command, or find the reading of the very same ones.

    Where the rules leave fields open and all teams agreed, a language model is to be asked in the background
    (`model_state`); what it once read from files that have not changed is taken over.
    """
    digests = file_digests(manifest.files, command)
    digest = tree_digest(digests)
    kept = ScriptReading.objects.filter(tree__owner=owner, tree__digest=digest).select_related("tree").first()
    if kept is not None and kept.reader_version == reader_version():
        SourceTree.objects.filter(pk=kept.tree_id).update(read_at=now, texts=_packed(manifest.files))
        return KeptReading(kept, reading_of(kept), manifest)
    reading = read(Tree(manifest.files, command or None))
    added = _taken_over(owner, digest, digests)
    server = server_for(owner, "reader")
    wanted = open_fields(reading, added) if server and manifest.files else ()
    with transaction.atomic():
        tree, _ = SourceTree.objects.update_or_create(
            owner=owner,
            digest=digest,
            defaults={
                "command": command,
                "files": digests,
                "left_out": manifest.left_out,
                "texts": _packed(manifest.files),
                "size": sum(map(len, manifest.files.values())),
                "read_at": now,
            },
        )
        row, _ = ScriptReading.objects.update_or_create(
            tree=tree,
            defaults={
                "reader_version": reader_version(),
                "rules": to_stored(reading),
                "added": {name: value_row(value) for name, value in added.items()},
                "wanted": list(wanted),
                "model_state": ModelState.ASKED if wanted else ModelState.UNASKED,
                "model_note": "",
                "asked_at": now if wanted else None,
            },
        )
        _make_room(owner)
    return KeptReading(row, reading_of(row), manifest)


def kept_reading(*, owner: User, tree_id: int) -> KeptReading | None:
    """A reading of the person's own; another's does not exist."""
    row = ScriptReading.objects.filter(tree__owner=owner, tree__pk=tree_id).select_related("tree").first()
    return KeptReading(row, reading_of(row), manifest_of(row.tree)) if row else None


def reading_of(row: ScriptReading) -> Reading:
    """The reading of the rules, with the values that a language model added."""
    return merged(from_stored(row.rules), {name: value_of(value) for name, value in row.added.items()})


def manifest_of(tree: SourceTree) -> ScriptManifest:
    """The texts as far as they are still kept."""
    files: dict[str, str] = json.loads(zlib.decompress(bytes(tree.texts))) if tree.texts else {}
    return ScriptManifest(files, tree.left_out)


def reader_server(owner: User) -> ChatServer | None:
    """The language model that may read the person's scripts."""
    return server_for(owner, "reader")


def is_any_awaited() -> bool:
    """Does a tree wait for a language model?"""
    return ScriptReading.objects.filter(model_state=ModelState.ASKED).exists()


def forget_old(now: datetime) -> int:
    """Forget texts after 30 days and readings after 90.

    Models that never answered are given up.
    """
    SourceTree.objects.filter(read_at__lt=now - KEEP_TEXTS).exclude(texts=b"").update(texts=b"")
    silent = ScriptReading.objects.filter(asked_at__lt=now - ANSWERS_WITHIN)
    silent.filter(model_state__in=(ModelState.ASKED, ModelState.READING)).update(
        model_state=ModelState.FAILED, model_note="It did not answer in time."
    )
    return SourceTree.objects.filter(read_at__lt=now - KEEP_READINGS).delete()[0]


def _packed(files: Mapping[str, str]) -> bytes:
    return zlib.compress(json.dumps(files).encode(), 1)


def _of(owner: User) -> QuerySet[SourceTree]:
    return SourceTree.objects.filter(owner=owner).order_by("-read_at", "-pk")


def _taken_over(owner: User, digest: str, digests: Mapping[str, str]) -> dict[str, FieldValue]:
    """A model's reading of unchanged files of the tree that is most like this one."""
    rows = ScriptReading.objects.filter(
        tree__owner=owner, reader_version=reader_version(), model_state=ModelState.DONE
    )
    near = [
        (equal_files(row.tree.files, digests), row)
        for row in rows.exclude(tree__digest=digest).select_related("tree").defer("tree__texts", "rules")
    ]
    equal, row = max(near, key=lambda one: (one[0], one[1].pk), default=(0, None))
    if row is None or not equal:
        return {}
    return carried({name: value_of(value) for name, value in row.added.items()}, row.tree.files, digests)


def _make_room(owner: User) -> None:
    """Keep the newest trees, as many as one upload may hold bytes."""
    size, old = 0, []
    for count, (key, own) in enumerate(_of(owner).values_list("pk", "size")):
        size += own
        if count and (count >= MOST_TREES or size > MOST_BYTES):
            old.append(key)
    SourceTree.objects.filter(pk__in=old).delete()
