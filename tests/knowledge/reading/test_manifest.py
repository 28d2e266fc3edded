"""Archives of strangers: what is read of them, and what is refused."""

from __future__ import annotations

import gzip
import io
import tarfile
import zipfile
from collections.abc import Callable
from itertools import pairwise

import pytest

from knowledge.reading.manifest import BLANK, LARGEST_FILE, UnreadableUpload, from_upload
from knowledge.reading.reader import read
from knowledge.reading.types import Tree
from tests.harness import hostile


def zipped(files: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return out.getvalue()


def test_texts_are_kept_and_the_rest_is_named() -> None:
    content = zipped(
        {
            "run/train.py": b"lr = 1e-4\n",
            "run/.env": b"TOKEN=1",
            "run/weights.bin": b"\x00\x01\xff",
            "run/more.zip": zipped({"a": b"b"}),
            "run/large.txt": b"x" * (LARGEST_FILE + 1),
            "run/wide.yaml": "epochs: 2".encode("utf-16"),
        }
    )
    found = from_upload("run.zip", content)
    assert found.files == {"run/train.py": "lr = 1e-4\n", "run/wide.yaml": "epochs: 2"}
    assert set(found.left_out) == {"run/.env", "run/weights.bin", "run/more.zip", "run/large.txt"}


def test_secrets_are_blanked_before_anything_is_kept() -> None:
    found = from_upload("t.py", b'login(token="hf_' + b"a" * 30 + b'")\nepochs = 3\n')
    assert found.files["t.py"] == f'login(token="{BLANK}")\nepochs = 3\n'


def test_the_digest_is_of_paths_and_texts() -> None:
    one, other = (
        from_upload("a.zip", zipped({"a": b"1", "b": b"2"})),
        from_upload("b.zip", zipped({"b": b"2", "a": b"1"})),
    )
    assert one.digest == other.digest != from_upload("c.zip", zipped({"a": b"1", "b": b"3"})).digest


def bomb() -> bytes:
    return zipped({f"{at}.txt": b"0" * LARGEST_FILE for at in range(150)})


def entries() -> bytes:
    return zipped({f"{at}": b"" for at in range(10_001)})


def climbing() -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        member = tarfile.TarInfo("../../etc/passwd")
        member.size = 1
        archive.addfile(member, io.BytesIO(b"x"))
    return out.getvalue()


def tar_bomb() -> bytes:
    """The head of a member that would unpack to 3 GB."""
    member = tarfile.TarInfo("zeros.txt")
    member.size = 3 << 30
    return gzip.compress(member.tobuf() + bytes(1 << 20))


def encrypted() -> bytes:
    """An archive whose only member has the flag of a password."""
    content = bytearray(zipped({"a.py": b"x = 1"}))
    content[6] |= 1
    content[content.index(b"PK\x01\x02") + 8] |= 1
    return bytes(content)


def absolute() -> bytes:
    return zipped({"/etc/cron.d/job.py": b"x = 1"})


def drive() -> bytes:
    return zipped({"C:\\Windows\\job.py": b"x = 1"})


@pytest.mark.parametrize(
    ("name", "make", "why"),
    [
        ("bomb.zip", bomb, "20 MB"),
        ("bomb.tar.gz", tar_bomb, "unpacks to too much"),
        ("secret.zip", encrypted, "encrypted; send one without a password"),
        ("root.zip", absolute, "unsafe path"),
        ("drive.zip", drive, "unsafe path"),
        ("many.zip", entries, "entries"),
        ("up.tar.gz", climbing, "unsafe path"),
        ("broken.tar.gz", lambda: b"\x1f\x8b not really", "cannot be read"),
        ("broken.zip", lambda: b"PK not really", r"damaged or of another kind; send a \.zip or \.tar\.gz"),
        ("a.rar", lambda: b"Rar!", "zip or tar.gz"),
        ("huge.py", lambda: b"x" * 2_000_001, "script alone"),
    ],
)
def test_what_cannot_be_read_is_refused_with_the_remedy(
    name: str, make: Callable[[], bytes], why: str
) -> None:
    with pytest.raises(UnreadableUpload, match=why):
        from_upload(name, make())


def test_a_large_notebook_is_left_out_unread() -> None:
    content = zipped({"big.ipynb": b"0" * 30_000_000, "t.py": b"x = 1"})
    found = from_upload("a.zip", content)
    assert (set(found.files), found.left_out) == ({"t.py"}, {"big.ipynb": "It is too large."})


def test_names_of_another_encoding_are_kept_as_far_as_they_can_be_read() -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", encoding="latin-1", format=tarfile.GNU_FORMAT) as archive:
        member = tarfile.TarInfo("größe.py")
        member.size = 5
        archive.addfile(member, io.BytesIO(b"x = 1"))
    assert set(from_upload("a.tar", out.getvalue()).files) == {"gr\ufffd\ufffde.py"}


def test_links_are_not_followed() -> None:
    link_in_zip = zipfile.ZipInfo("link.py")
    link_in_zip.external_attr = 0o120777 << 16
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr(link_in_zip, "/etc/passwd")
    assert from_upload("a.zip", packed.getvalue()).files == {}
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        link = tarfile.TarInfo("link.py")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    assert from_upload("a.tar", out.getvalue()).files == {}


LETTERS = "abcdefghi"
BILLION_LAUGHS = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{name}: &{name} [{','.join([f'*{before}'] * 9)}]\n" for before, name in pairwise(LETTERS)
)


@pytest.mark.parametrize(
    "text",
    [
        BILLION_LAUGHS,
        "!!python/object/apply:os.system ['echo hello']\n",
        "[" * 5_000,
        "x" * 190_000,
        "a: 1\n" * 4_000,
    ],
)  # fmt: skip
def test_hostile_configurations_cost_little(text: str) -> None:
    read(Tree({"c.yaml": text}, "python t.py c.yaml"))


@pytest.mark.parametrize(
    "text",
    [
        "x = " + "(" * 3_000 + ")" * 3_000,
        "x = 9 ** 9 ** 9 ** 9\nlr = 2 ** 100000\n",
        "x = " + "+".join(["1"] * 20_000),
        "\x0c\n" * 1_000 + "epochs = 2",
        "class A:\n" * 500,
    ],
)
def test_hostile_scripts_cost_little(text: str) -> None:
    read(Tree({"t.py": text}, "python t.py"))


@pytest.mark.parametrize(
    "line",
    [
        "python t.py " + "$(" * 5_000,
        "a" * 100_000,
        '"' * 999,
        "python t.py --x " + "${A:-" * 500,
    ],
)
def test_hostile_commands_cost_little(line: str) -> None:
    read(Tree({"t.py": "x = 1"}, line))


CYCLES = {
    "shell": ({"a.sh": "bash b.sh --lr 1e-4\n", "b.sh": "bash a.sh\n"}, "bash a.sh"),
    "hydra": (
        {
            "train.py": "@hydra.main(config_path='conf', config_name='a')\ndef main(cfg): pass\n",
            "conf/a.yaml": "defaults:\n  - b\n",
            "conf/b.yaml": "defaults:\n  - a\n",
        },
        "python train.py",
    ),
    "imports": ({"a.py": "import b\n", "b.py": "import a\n"}, "python a.py"),
    "references": ({"c.yaml": "epochs: ${seed}\nseed: ${epochs}\n"}, "python t.py c.yaml"),
    "variables": ({"a.sh": "A=$B\nB=$A\nA=$B$B$B\npython t.py --lr $A\n"}, "bash a.sh"),
    "long line": ({"c.yaml": "a: " + "x" * 190_000 + "\nepochs: 2\n"}, "python t.py c.yaml"),
}


@pytest.mark.parametrize("name", CYCLES)
def test_what_includes_itself_ends(name: str) -> None:
    files, command = CYCLES[name]
    with hostile.bounded(seconds=3):
        read(Tree(files, command))
