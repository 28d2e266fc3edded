"""Archives of strangers: what is read of them, and what is refused."""

from __future__ import annotations

import gzip
import io
import struct
import tarfile
import zipfile
from collections.abc import Callable
from itertools import pairwise

import pytest

from knowledge.reading.collecting import MOST_PARSED
from knowledge.reading.manifest import (
    BLANK,
    LARGEST_FILE,
    LARGEST_NOTEBOOK,
    UnreadableUpload,
    from_upload,
)
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


def listed_often(times: int, size: int) -> bytes:
    """One member that the list names many times, so that all entries share its bytes."""
    whole = zipped({"a.py": bytes(size)})
    begins = zipfile.ZipFile(io.BytesIO(whole)).start_dir
    entry = whole[begins : whole.rindex(b"PK\5\6")]
    end = b"PK\5\6\0\0\0\0" + struct.pack("<HHIIH", times, times, len(entry) * times, begins, 0)
    return whole[:begins] + entry * times + end


def overlapping_in_part() -> bytes:
    """A second member that begins within the bytes of the first one."""
    inner = zipped({"b.py": b"x = 1"})
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("a.py", inner)
    content = out.getvalue()
    outer = content.rindex(b"PK\1\2")
    begins, local = inner.index(b"PK\1\2"), content.index(b"PK\3\4", 1)
    entry = bytearray(inner[begins : inner.rindex(b"PK\5\6")])
    entry[42:46] = struct.pack("<I", local)
    listed = content[outer : content.rindex(b"PK\5\6")] + bytes(entry)
    return content[:outer] + listed + b"PK\5\6\0\0\0\0" + struct.pack("<HHIIH", 2, 2, len(listed), outer, 0)


def many_large() -> bytes:
    return zipped({f"part{at}.py": bytes(LARGEST_NOTEBOOK) for at in range(110)})


def said_to_have(size: int) -> bytes:
    """A member of two million zeros whose entry states another size."""
    content = bytearray(zipped({"a.py": bytes(2_000_000)}))
    at = content.rindex(b"PK\1\2") + 24
    content[at : at + 4] = struct.pack("<I", size)
    return bytes(content)


def said_by_zip64() -> bytes:
    """The list states 2^40 bytes in the field for large files."""
    content = zipped({"a.py": b"x = 1"})
    begins = content.rindex(b"PK\1\2")
    entry = bytearray(content[begins : content.rindex(b"PK\5\6")])
    entry[24:28], entry[30:32] = b"\xff" * 4, struct.pack("<H", 12)
    listed = bytes(entry) + struct.pack("<HHQ", 1, 8, 2**40)
    return content[:begins] + listed + b"PK\5\6\0\0\0\0" + struct.pack("<HHIIH", 1, 1, len(listed), begins, 0)


def long_list() -> bytes:
    """300 entries with 65,000 bytes of further fields each, which decode in quadratic time."""
    fields = struct.pack("<HH", 0x9999, 0) * 16_250
    entry = struct.pack("<4s4B4H3L5H2L", b"PK\1\2", 20, 3, 20, *[0] * 8, 4, len(fields), *[0] * 5)
    listed = (entry + b"a.py" + fields) * 300
    return listed + b"PK\5\6\0\0\0\0" + struct.pack("<HHIIH", 300, 300, len(listed), 0, 0)


def unusually_packed(method: int) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        archive.writestr("a.py", bytes(1_000))
    return out.getvalue()


def header(name: str, size: int, kind: bytes) -> bytes:
    member = tarfile.TarInfo(name)
    member.size, member.type = size, kind
    return member.tobuf(tarfile.GNU_FORMAT)


def stepping_back() -> bytes:
    """The size of its member is below zero, so that the same bytes would be read for ever."""
    block = bytearray(header("a.py", 0, tarfile.REGTYPE))
    block[124:136], block[148:156] = b"\xff" * 12, b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return gzip.compress(bytes(block) + bytes(2_048))


def with_extended_header(records: bytes) -> bytes:
    padded = records + bytes(-len(records) % 512)
    script = header("a.py", 5, tarfile.REGTYPE) + b"x = 1" + bytes(507)
    return gzip.compress(header("x", len(records), tarfile.XHDTYPE) + padded + script + bytes(1_024))


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
        ("often.zip", lambda: listed_often(3_000, 1_999_990), "unpacks to too much"),
        ("twice.zip", lambda: listed_often(2, 1_000), "overlap"),
        ("part.zip", overlapping_in_part, "overlap"),
        ("large.zip", many_large, "unpacks to too much"),
        ("says-more.zip", lambda: said_to_have(2**32 - 2), "unpacks to too much"),
        ("says-less.zip", lambda: said_to_have(100), "damaged"),
        ("zip64.zip", said_by_zip64, "unpacks to too much"),
        ("list.zip", long_list, "unpacks to too much"),
        ("bzip2.zip", lambda: unusually_packed(zipfile.ZIP_BZIP2), "send a zip with deflate"),
        ("lzma.zip", lambda: unusually_packed(zipfile.ZIP_LZMA), "send a zip with deflate"),
        ("nameless.zip", lambda: zipped({"a": b""}).replace(b"\x01\x00\x00\x00a", b"\x00" * 5), "damaged"),
        ("back.tar.gz", stepping_back, "damaged"),
        ("name.tar.gz", lambda: gzip.compress(header("x", 2**30, tarfile.GNUTYPE_LONGNAME)), "damaged"),
        ("holes.tar", lambda: header("x", 2**33, tarfile.GNUTYPE_SPARSE), "without --sparse"),
        ("holes.tar.gz", lambda: with_extended_header(b"22 GNU.sparse.major=1\n"), "without --sparse"),
        ("far.tar", lambda: header("x", 2**33, tarfile.REGTYPE), "unpacks to too much"),
        ("twice.tar.gz", lambda: gzip.compress(climbing()), "damaged"),
        ("parts.tar.gz", lambda: gzip.compress(b"") * 1_000, "damaged"),
        ("a.tar.xz", lambda: b"\xfd7zXZ\0", "zip or tar.gz"),
    ],
)
def test_what_cannot_be_read_is_refused_with_the_remedy(
    name: str, make: Callable[[], bytes], why: str
) -> None:
    with pytest.raises(UnreadableUpload, match=why):
        from_upload(name, make())


@pytest.mark.parametrize("records", [b"1" * 1_900_000, b"5 a=\n" * 300_000, b"18 size=999999999\n"])
def test_what_an_extended_header_of_a_tar_claims_costs_nothing(records: bytes) -> None:
    with hostile.bounded(seconds=10):
        assert set(from_upload("a.tar.gz", with_extended_header(records)).files) == {"a.py"}


@pytest.mark.parametrize("form", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT])
def test_long_names_of_a_tar_are_whole(form: int) -> None:
    names = [f"{'ö' * 80}/a.py", "b.py", f"{'c' * 200}/c.yaml"]
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz", format=form) as archive:
        for name in names:
            member = tarfile.TarInfo(name)
            member.size, member.mtime = 5, 1.5
            archive.addfile(member, io.BytesIO(b"x = 1"))
    assert list(from_upload("a.tgz", out.getvalue()).files) == names


def test_what_is_left_out_is_not_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    unpacked: list[str] = []
    read = zipfile.ZipFile.read
    monkeypatch.setattr(
        zipfile.ZipFile,
        "read",
        lambda archive, member: unpacked.append(member.filename) or read(archive, member),
    )
    others = {"big.py": bytes(LARGEST_FILE + 1), ".env": b"A=1", "in.zip": b"", "id_rsa": b"", "w.bin": b"\0"}
    found = from_upload("a.zip", zipped({**others, "t.py": b"x = 1"}))
    assert (unpacked, list(found.files)) == (["w.bin", "t.py"], ["t.py"])


@pytest.mark.parametrize("piece", ["eyJ", "token=", "sk-", "hf_", 'key="', "a.eyJ"])
def test_texts_that_nearly_hold_secrets_cost_little(piece: str) -> None:
    text = piece * (LARGEST_NOTEBOOK // len(piece) - 1)
    with hostile.bounded(seconds=10):
        from_upload("a.ipynb", text.encode())


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


@pytest.mark.parametrize(
    "text", ["lr = 1\n" * 20_000 + "f(lr=lr)\n" * 5_000, "d = {'a': 1}\nx = d['a']\n" * 7_000]
)
def test_names_that_are_set_and_used_often_cost_little(text: str) -> None:
    with hostile.bounded(seconds=60):
        read(Tree({"t.py": text}, "python t.py"))


def test_very_many_names_of_files_cost_little() -> None:
    files = {f"d{at}/c.yaml": "a: 1" for at in range(2_000)}
    command = "python t.py " + " ".join(f"{at}.yaml" for at in range(5_000))
    with hostile.bounded(seconds=10):
        read(Tree({**files, "t.py": "x = 1", "a.sh": command}, "bash a.sh"))


def test_files_that_are_named_beyond_the_bound_are_told() -> None:
    files = {f"c{at}.yaml": f"[{'x,' * 70_000}]" for at in range(40)}
    reading = read(Tree({**files, "t.py": "x = 1"}, f"python t.py {' '.join(files)}"))
    assert len(reading.unreadable) == len(files) - MOST_PARSED // 140_000
    assert all("300,000 characters" in why for why in reading.unreadable.values())


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
