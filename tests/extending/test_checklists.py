"""One more of each kind takes the files that its checklist names, and nothing else."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.extending.checkout import HERE, Toy, copy_tree, run

POLICY = Toy(
    kind="policy",
    heading="A scheduling policy: 3 files",
    lines={
        "scheduler/core/policies/__init__.py": {
            "from scheduler.core.policies.pollux import POLLUX\n": (
                "from scheduler.core.policies.newest import NEWEST\n"
                "from scheduler.core.policies.pollux import POLLUX\n"
            ),
            "MDDC, TOPOLOGY,\n": "MDDC, TOPOLOGY, NEWEST,\n",
        }
    },
)
TOYS = [POLICY]


@pytest.mark.parametrize("toy", TOYS, ids=lambda toy: toy.kind)
def test_the_checklist_names_every_file(toy: Toy) -> None:
    assert toy.checklist, f"CONTRIBUTING has no checklist {toy.heading!r}"
    assert toy.heading.endswith(f": {len(toy.files)} files"), toy.files
    for name in toy.files:
        told = [name, *(f"{folder}/" for folder in Path(name).parents)]
        assert any(f"`{path}`" in toy.checklist for path in told), f"it names neither of {told}"


def test_what_was_added_by_the_checklists_alone_works(tmp_path: Path) -> None:
    copy_tree(tmp_path)
    shutil.copytree(HERE / "proofs", tmp_path / "tests" / "proofs")
    for toy in TOYS:
        toy.add_to(tmp_path)
    tests = [name for toy in TOYS for name in toy.files if Path(name).name.startswith("test_")]
    run(tmp_path, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "tests/proofs", *tests)
