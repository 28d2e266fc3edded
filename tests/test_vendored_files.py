"""What lies in static/vendor is what NOTICE says, and of the versions that the installed wheels ask for."""

from __future__ import annotations

import pytest

from tests.vendored_files import FOLDER, NOTICE, VendoredFile, licence_of, vendored_files, with_paragraph

FILES = vendored_files()


def test_the_folder_holds_nothing_else() -> None:
    known = {name for file in FILES for name in (file.name, licence_of(file).name)}
    assert {path.name for path in FOLDER.iterdir()} == known


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_notice_tells_version_licence_and_digest(file: VendoredFile) -> None:
    assert file.paragraph in NOTICE.read_text(), "renew them: .venv/bin/python -m tests.vendored_files"
    assert f"v{file.version}\n" in (FOLDER / file.name).read_text(encoding="utf-8")[:200]
    assert "Permission is hereby granted" in licence_of(file).read_text()


def test_another_version_takes_the_place_of_the_earlier_paragraph() -> None:
    (file,) = FILES
    earlier = f"Foretune\n\nstatic/vendor/{file.name}\n    of old\n    SHA-256 00\n\nothers\n    theirs\n"
    assert with_paragraph(earlier, file) == f"Foretune\n\n{file.paragraph}\nothers\n    theirs\n"
    assert with_paragraph("Foretune\n", file) == f"Foretune\n\n{file.paragraph}"
