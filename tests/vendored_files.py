"""Front-end files that no Python package carries: `static/vendor/`, each with a paragraph in NOTICE.

`python -m tests.vendored_files` renews them by npm, in the versions that the installed wheels name.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import tarfile
import tempfile
import textwrap
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
FOLDER, NOTICE = ROOT / "static" / "vendor", ROOT / "NOTICE"
LICENCE = ".LICENSE.txt"


class VendoredFile(NamedTuple):
    """A file of an npm package.

    version: the package's, as what this portal has installed asks for it.
    """

    name: str
    package: str
    version: str
    about: str

    @property
    def paragraph(self) -> str:
        """What NOTICE says of it."""
        digest = hashlib.sha256((FOLDER / self.name).read_bytes()).hexdigest()
        text = f"{self.package} {self.version}, {self.about} Unchanged."
        lines = [*textwrap.wrap(text, 104, break_on_hyphens=False), f"SHA-256 {digest}"]
        return f"static/vendor/{self.name}\n{textwrap.indent(chr(10).join(lines), '    ')}\n"


def plotly_js_version() -> str:
    """The version of plotly.js that the installed wheel of plotly builds figures for."""
    spec = find_spec("plotly")
    assert spec is not None
    assert spec.origin is not None
    with (Path(spec.origin).parent / "package_data" / "plotly.min.js").open(encoding="utf-8") as file:
        found = re.search(r"plotly\.js v([\d.]+)", file.read(500))
    assert found is not None
    return found[1]


def vendored_files() -> list[VendoredFile]:
    return [
        VendoredFile(
            name="plotly-basic.min.js",
            package="plotly.js-basic-dist-min",
            version=plotly_js_version(),
            about="copyright Plotly, Inc., MIT, https://github.com/plotly/plotly.js.",
        )
    ]


def renew(file: VendoredFile) -> None:
    """Fetch a file and its licence. Raises CalledProcessError where npm cannot."""
    with tempfile.TemporaryDirectory() as scratch:
        subprocess.run(["npm", "pack", "--silent", f"{file.package}@{file.version}"], cwd=scratch, check=True)
        with tarfile.open(next(Path(scratch).glob("*.tgz"))) as packed:
            packed.extractall(scratch, filter="data")
        shutil.copyfile(Path(scratch, "package", file.name), FOLDER / file.name)
        shutil.copyfile(Path(scratch, "package", "LICENSE"), licence_of(file))


def licence_of(file: VendoredFile) -> Path:
    return FOLDER / f"{file.name.removesuffix('.min.js')}{LICENCE}"


def with_paragraph(notice: str, file: VendoredFile) -> str:
    """NOTICE with the file's paragraph, in place of an earlier one."""
    known = re.compile(rf"^static/vendor/{re.escape(file.name)}\n(?: {{4}}.*\n)+", re.MULTILINE)
    if known.search(notice):
        return known.sub(lambda _: file.paragraph, notice)
    return f"{notice.rstrip()}\n\n{file.paragraph}"


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for file in vendored_files():
        renew(file)
        NOTICE.write_text(with_paragraph(NOTICE.read_text(), file))


if __name__ == "__main__":
    main()
