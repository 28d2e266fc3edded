"""One more of each kind takes the files that its checklist names, and nothing else."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.extending.checkout import HERE, Toy, copy_tree, run_tests

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
EXECUTOR = Toy(
    kind="executor",
    heading="An executor: 2 files",
    lines={
        "trainer/agent/executors/table.py": {
            "import ProcessExecutor\n": (
                "import ProcessExecutor\nfrom trainer.agent.executors.shell import ShellExecutor\n"
            ),
            '    "process": ProcessExecutor,\n': (
                '    "process": ProcessExecutor,\n    "shell": ShellExecutor,\n'
            ),
        }
    },
)
QUEUE = "from portal.web.jobs import files, jobs, queue\n"
ANSWERS = "login login 200   login 200   200   200   login login login\n"
PAGE = Toy(
    kind="page",
    heading="A page: 5 files",
    lines={
        "portal/web/navigation.py": {
            QUEUE: QUEUE.replace("queue\n", "queue, waiting\n"),
            'queue.queue, "queue"),\n': (
                'queue.queue, "queue"),\n'
                '    Page(Menu.MAIN, "Waiting", "waiting/", waiting.waiting, "waiting"),\n'
            ),
        },
        "tests/portal/access/table.txt": {
            f"GET    {'/queue/':<50} {ANSWERS}": (
                f"GET    {'/queue/':<50} {ANSWERS}GET    {'/waiting/':<50} {ANSWERS}"
            ),
        },
    },
)
SEED = '        "seed": Param(\n'
DROPOUT = 'kind=float, binds=_S, default=0.0, low=0.0, high=0.5, help="Share of the adapter left out."'
PARAMETER = Toy(
    kind="parameter",
    heading="A parameter that binds at submit: 4 files",
    lines={
        "trainer/recipes.py": {SEED: f'        "lora_dropout": Param({DROPOUT}),\n{SEED}'},
        "trainer/train/settings.py": {
            "    lora_alpha: int\n": "    lora_alpha: int\n    lora_dropout: float\n"
        },
        "trainer/train/base/adapters.py": {
            "lora_dropout=0.0,": "lora_dropout=settings.lora_dropout,",
        },
    },
)
TOYS = [POLICY, EXECUTOR, PAGE, PARAMETER]
REVIEWED = "tests/portal/access/test_matrix.py::test_every_address_and_method_has_a_reviewed_row"


@pytest.mark.parametrize("toy", TOYS, ids=lambda toy: toy.kind)
def test_the_checklist_names_every_file(toy: Toy) -> None:
    assert toy.checklist, f"CONTRIBUTING has no checklist {toy.heading!r}"
    assert toy.heading.endswith(f": {len(toy.files)} files"), toy.files
    for name in toy.files:
        told = [name, *(f"{folder}/" for folder in Path(name).parents)]
        assert any(f"`{path}`" in toy.checklist for path in told), f"it names neither of {told}"


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the tree with all toys, and the proofs that they are where they should be."""
    checkout = tmp_path_factory.mktemp("checkout")
    copy_tree(checkout)
    shutil.copytree(HERE / "proofs", checkout / "tests" / "proofs")
    for toy in TOYS:
        toy.add_to(checkout)
    return checkout


def test_what_was_added_is_at_every_door(checkout: Path) -> None:
    tests = [name for toy in TOYS for name in toy.files if Path(name).name.startswith("test_")]
    run_tests(checkout, "tests/proofs", REVIEWED, *tests)


def test_the_life_of_a_claim_is_the_same_under_another_executor(checkout: Path) -> None:
    files = [f"tests/trainer/agent/test_{name}.py" for name in ("executors", "life", "stops", "faults")]
    told = "test_executors or test_life or adopts or saves or ignored or agent_is_told_to_leave"
    run_tests(checkout, "-k", f"shell and ({told})", *files)
