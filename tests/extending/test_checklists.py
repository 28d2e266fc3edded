"""An addition of each kind takes exactly the files that its checklist names."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.extending.checkout import HERE, Toy, copy_tree, is_of_training, run_tests
from tests.suite import TRAINING_PYTHON

POLICY = Toy(
    kind="policy",
    heading="A scheduling policy: 3 files",
    lines={
        "scheduler/core/policies/__init__.py": {
            "from scheduler.core.policies.pollux import POLLUX\n": (
                "from scheduler.core.policies.newest import NEWEST\n"
                "from scheduler.core.policies.pollux import POLLUX\n"
            ),
            "TOPOLOGY, SPOT,\n": "TOPOLOGY, SPOT, NEWEST,\n",
        }
    },
)
EXECUTOR = Toy(
    kind="executor",
    heading="An executor: 2 files",
    lines={
        "trainer/agent/executors/table.py": {
            "import ProcessExecutor\n": (
                "import ProcessExecutor\nfrom trainer.agent.executors.queued import QueueExecutor\n"
            ),
            '    "process": ProcessExecutor,\n': (
                '    "process": ProcessExecutor,\n    "queued": QueueExecutor,\n'
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
SEED = '    "seed": Param(\n'
DROPOUT = 'kind=float, binds=_S, default=0.0, low=0.0, high=0.5, help="Share of the adapter left out."'
PARAMETER = Toy(
    kind="parameter",
    heading="A parameter that binds at submit: 3 files",
    lines={
        "trainer/recipes/common.py": {
            SEED: f'    "lora_dropout": Param({DROPOUT}),\n{SEED}',
            "    lora_alpha: int\n": "    lora_alpha: int\n    lora_dropout: float\n",
        },
        "trainer/train/base/adapters.py": {
            'lora_dropout=LOOP_CONSTANTS["lora_dropout"].value,': "lora_dropout=settings.lora_dropout,",
        },
    },
)
CHART = "GET    /jobs/{job}/charts/%-31s login login 200   login 200   404   200   login login login\n"
SHARE = "1 - sum(self.plan.lengths[row] for row in self.plan.rows(step)) / self.plan.tokens(step)\n"
METRIC = Toy(
    kind="metric",
    heading="A step metric: 4 files",
    lines={
        "trainer/step_metrics.py": {
            "        caption=Caption.HIGHEST,\n        over=Over.MEAN,\n    ),\n)\n": (
                "        caption=Caption.HIGHEST,\n        over=Over.MEAN,\n    ),\n"
                '    StepMetric(\n        name="padding",\n        label="padding",\n'
                '        help="share of the tokens computed that are padding",\n        chart="padding",\n'
                "        over=Over.MEAN,\n    ),\n)\n"
            ),
        },
        "trainer/train/loop.py": {
            '"learning_rate": rate}\n': f'"learning_rate": rate}}\n        values["padding"] = {SHARE}'
        },
        "tests/portal/access/table.txt": {
            CHART % "throughput/": CHART % "padding/" + CHART % "throughput/",
        },
    },
)
REASONS = '{True: "It updates the weights in one pass.", False: "It needs no kernels of its own."}'
FUSED = f'kind=bool, binds=_D, default=True, help="Update all weights in one pass.", reasons={REASONS}'
SETTING = Toy(
    kind="setting",
    heading="A parameter that binds at dispatch: 6 files",
    lines={
        "trainer/recipes/common.py": {
            '    "sharding": Param(\n': f'    "fused_optimizer": Param({FUSED}),\n    "sharding": Param(\n',
            "    sharding: str | None\n": "    sharding: str | None\n    fused_optimizer: bool\n",
        },
        "trainer/train/entries/sft.py": {"fused=True": "fused=settings.fused_optimizer"},
        "knowledge/core/domain/types.py": {
            "    run_protocol: str | None = None\n": (
                "    run_protocol: str | None = None\n    fused_optimizer: bool | None = None\n"
            ),
        },
        "knowledge/core/domain/config_space.py": {
            '    "sharding": _shardings,\n': (
                '    "sharding": _shardings,\n    "fused_optimizer": (True, False),\n'
            ),
        },
        "knowledge/core/analytic/cost_model.py": {
            "/ shards / c.bandwidth\n": ('/ shards / c.bandwidth * (2.0 - c.setting("fused_optimizer"))\n'),
        },
    },
)
RECIPE = Toy(
    kind="recipe",
    heading="A recipe: 4 files",
    lines={
        "trainer/recipes/__init__.py": {
            "import SFT\n": "import SFT\nfrom trainer.recipes.weighted import WEIGHTED\n",
            "in (SFT,)}": "in (SFT, WEIGHTED)}",
        },
    },
)
TERM = Toy(
    kind="term",
    heading="A job's term: 5 files",
    lines={
        "scheduler/core/job_terms.py": {
            '    JobTerm(\n        name="metadata",\n': (
                '    JobTerm(name="cost_center", kind=Kind.NAME, label="Cost center", help="Who pays.",\n'
                '        default="", high=20, change=_LIVES, changed="{} pays now."),\n'
                '    JobTerm(\n        name="metadata",\n'
            ),
        },
        "scheduler/models/jobs.py": {
            "    metadata = models.JSONField(": (
                '    cost_center = models.CharField(max_length=20, blank=True, default="", db_default="")\n'
                "    metadata = models.JSONField("
            ),
        },
        "templates/jobs/live.html": {
            "    {% if job.budget %}": (
                "    {% if job.cost_center %}<div><dt>Cost center</dt><dd>{{ job.cost_center }}</dd></div>"
                "{% endif %}\n    {% if job.budget %}"
            ),
        },
    },
    migration="scheduler/migrations/9999_cost_center.py",
)
CHANNEL = Toy(
    kind="channel",
    heading="A channel of notices: 4 files",
    lines={
        "portal/notices/table.py": {
            "from portal.notices.log.channel import LogChannel\n": (
                "from portal.notices.file.channel import FileChannel\n"
                "from portal.notices.log.channel import LogChannel\n"
            ),
            '    "log": LogChannel(),\n': '    "log": LogChannel(),\n    "file": FileChannel(),\n',
        }
    },
)
TOYS = [RECIPE, POLICY, EXECUTOR, PAGE, PARAMETER, METRIC, SETTING, TERM, CHANNEL]
REVIEWED = "tests/portal/access/test_matrix.py::test_every_address_and_method_has_a_reviewed_row"


@pytest.mark.parametrize("toy", TOYS, ids=lambda toy: toy.kind)
def test_the_checklist_names_every_file(toy: Toy) -> None:
    assert toy.checklist, f"CONTRIBUTING has no checklist {toy.heading!r}"
    assert toy.heading.endswith(f": {len(toy.files)} files"), toy.files
    for name in toy.files:
        reported = [name, *(f"{folder}/" for folder in Path(name).parents)]
        assert any(f"`{path}`" in toy.checklist for path in reported), f"it names neither of {reported}"


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the tree with all toys.

    The proofs that the toys are where they should be are part of it.
    """
    checkout = tmp_path_factory.mktemp("checkout")
    copy_tree(checkout)
    shutil.copytree(HERE / "proofs", checkout / "tests" / "proofs")
    for toy in TOYS:
        toy.add_to(checkout)
    return checkout


@pytest.mark.slow
def test_what_was_added_is_at_every_interface(checkout: Path) -> None:
    tests = [name for toy in TOYS for name in toy.tests if not is_of_training(name)]
    run_tests(checkout, "tests/proofs", REVIEWED, *tests)


@pytest.mark.slow
@pytest.mark.skipif(not TRAINING_PYTHON.exists(), reason="needs the training environment (.venv-train)")
def test_trainings_know_what_was_added(checkout: Path) -> None:
    tests = [name for toy in TOYS for name in toy.tests if is_of_training(name)]
    run_tests(checkout, "-c", "tests/trainer/pytest.ini", *tests, python=TRAINING_PYTHON)


@pytest.mark.slow
def test_the_life_of_a_claim_is_the_same_under_another_executor(checkout: Path) -> None:
    files = [f"tests/trainer/agent/test_{name}.py" for name in ("executors", "life", "stops", "faults")]
    reported = "test_executors or test_life or adopts or saves or ignored or agent_is_told_to_leave"
    of_this_machine = "load_of_a_training or enrols_once or clean_environment"  # which the toy has no part of
    run_tests(checkout, "-k", f"queued and ({reported}) and not ({of_this_machine})", *files)
