"""Uploads of scripts by page and REST: refusals name the field and keep nothing, the rest is read."""

from __future__ import annotations

import io
import json
import tarfile
import zipfile
from collections.abc import Callable

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client, override_settings
from rest_framework.test import APIClient

from knowledge.models import SourceTree
from portal.accounts.models import Membership, Team, User
from tests.harness import hostile
from tests.harness.chat_server import Reply, chatting
from tests.knowledge.reading.test_manifest import (
    BILLION_LAUGHS,
    bomb,
    climbing,
    encrypted,
    listed_often,
    tar_bomb,
    zipped,
)

API, PAGE = "/api/imports/", "/jobs/import/"


def upload(name: str, content: bytes) -> SimpleUploadedFile:
    return SimpleUploadedFile(name, content)


def entries() -> bytes:
    return zipped({f"{at}": b"" for at in range(100_000)})


def climbing_zip() -> bytes:
    return zipped({"../../etc/cron.d/job.py": b"x = 1"})


REFUSED: dict[str, tuple[str, Callable[[], bytes], str]] = {
    "zip bomb": ("bomb.zip", bomb, "20 MB of text"),
    "tar bomb": ("bomb.tar.gz", tar_bomb, "unpacks to too much"),
    "100,000 entries": ("many.zip", entries, "entries; send the training&#x27;s files alone"),
    "encrypted": ("secret.zip", encrypted, "encrypted; send one without a password"),
    "climbing tar": ("up.tar.gz", climbing, "unsafe path"),
    "climbing zip": ("up.zip", climbing_zip, "unsafe path"),
    "one member 3,000 times": ("often.zip", lambda: listed_often(3_000, 1_999_990), "unpacks to too much"),
    "one member twice": ("twice.zip", lambda: listed_often(2, 1_000), "Members of the archive overlap"),
    "another archive": ("a.7z", lambda: b"7z", "send a zip or tar.gz"),
    "half an archive": (
        "half.zip",
        lambda: zipped({"a.py": b"x = 1" * 99})[:-30],
        "damaged or of another kind",
    ),
    "a huge script": ("huge.py", lambda: b"x" * 2_000_001, "send the script alone"),
}


@pytest.mark.parametrize(
    "kind",
    [pytest.param(kind, marks=[pytest.mark.slow] if kind == "100,000 entries" else []) for kind in REFUSED],
)
def test_what_is_refused_is_told_at_its_field_and_not_kept(
    api: APIClient, browser: Client, kind: str
) -> None:
    name, make, why = REFUSED[kind]
    content = make()
    with hostile.bounded(seconds=20):
        answer = api.post(API, {"file": upload(name, content)}, format="multipart")
        page = browser.post(PAGE, {"upload": upload(name, content)})
    assert answer.status_code == page.status_code == 400
    assert why.replace("&#x27;", "'") in str(answer.json()["error"]["fields"]["file"]).replace('"', "'")
    assert why in page.content.decode()
    assert not SourceTree.objects.exists()


def links() -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        link = tarfile.TarInfo("passwd.yaml")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
        member = tarfile.TarInfo("train.py")
        member.size = 5
        archive.addfile(member, io.BytesIO(b"x = 1"))
    return out.getvalue()


def with_nul() -> bytes:
    """A name that goes on behind a zero, of as many bytes."""
    return zipped({"train.py#.sh": b"x = 1"}).replace(b"train.py#.sh", b"train.py\x00.sh")


GOOD = b"learning_rate: 3e-5\n"
READ: dict[str, tuple[dict[str, bytes], str]] = {
    "a 200 MB notebook": ({"big.ipynb": b"0" * 200_000_000}, "too large"),
    "Python 2": ({"old.py": b"print 'lr', 1e-4\nlr = 1e-4\n"}, "cannot be parsed"),
    "an error of syntax": ({"old.py": b"def f(:\n"}, "cannot be parsed"),
    "a line of 1 MB": ({"more.yaml": b"a: " + b"x" * 1_000_000}, "too large"),
    "bytes": ({"w.bin": bytes(range(256)) * 9}, "no text"),
    "an archive": ({"in.zip": zipped({"a.py": b"1"})}, "inside the archive"),
    "a key": ({".env": b"KEY=1"}, "secrets"),
}


@pytest.mark.parametrize("kind", READ)
def test_a_file_that_cannot_be_read_is_named_and_the_others_count(
    api: APIClient, browser: Client, kind: str
) -> None:
    files, why = READ[kind]
    other = next(iter(files))
    content = zipped({**files, "c.yaml": GOOD, "train.py": b"import sys\n"})
    command = f"python {other if other.endswith('.py') else 'train.py'} --config c.yaml --more more.yaml"
    sent = {"command": command}
    with hostile.bounded(seconds=20):
        answer = api.post(API, {"file": upload("a.zip", content), **sent}, format="multipart").json()
        page = browser.post(PAGE, {"upload": upload("a.zip", content), **sent}).content.decode()
    assert answer["fields"]["learning_rate"]["value"] == 3e-5
    assert why in json.dumps([answer["unreadable"], answer["left_out"]])
    assert other in page
    assert why in page


@pytest.mark.parametrize(
    "text", [BILLION_LAUGHS, "!!python/object/apply:os.system ['echo x > /tmp/built']\n"]
)
def test_hostile_configurations_are_only_text(api: APIClient, text: str) -> None:
    content = zipped({"more.yaml": text.encode(), "c.yaml": GOOD, "train.py": b"import sys\n"})
    sent = {"command": "python train.py --config c.yaml --config more.yaml"}
    with hostile.bounded(seconds=20):
        answer = api.post(API, {"file": upload("a.zip", content), **sent}, format="multipart")
    assert answer.json()["fields"].keys() == {"learning_rate"}


@pytest.mark.parametrize(
    "content",
    [links(), with_nul(), zipped({"c.yaml": GOOD.decode().encode("utf-16"), "train.py": b"x = 1"})],
    ids=["links", "a name with a zero", "UTF-16"],
)
def test_odd_archives_are_read_as_far_as_they_go(api: APIClient, content: bytes) -> None:
    name = "a.zip" if zipfile.is_zipfile(io.BytesIO(content)) else "a.tar.gz"
    answer = api.post(
        API, {"file": upload(name, content), "command": "python train.py --lr 1e-4"}, format="multipart"
    )
    assert answer.status_code == 200
    assert answer.json()["fields"]["learning_rate"]["value"] == 1e-4
    kept = SourceTree.objects.get().files
    assert not any("\x00" in path or "passwd" in path for path in kept)


def test_a_hanging_language_model_delays_no_answer(api: APIClient, browser: Client, person: User) -> None:
    Membership.objects.create(team=Team.objects.create(name="nlp", language_model=True), user=person)
    script = b'knobs = {"how_wide": 16}\n'
    with (
        chatting(lambda _: Reply(hang=True)) as chat,
        override_settings(LANGUAGE_SERVERS={"reader": chat.server, "intent": None}),
        hostile.bounded(seconds=20),
    ):
        answer = api.post(API, {"file": upload("a.py", script)}, format="multipart").json()
        page = browser.post(PAGE, {"upload": upload("a.py", script)}).content.decode()
        again = browser.get(f"{PAGE}{answer['id']}/")
        assert chat.asked == []  # a worker asks, once the answer is sent
    assert answer["language_model"]["server"] == chat.server.host
    assert chat.server.host in page
    assert again.status_code == 200
