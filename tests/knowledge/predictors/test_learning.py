"""Training and promotion on a few hundred synthetic rows whose truth is known."""

from __future__ import annotations

import io
import json
import os
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
from django.core.management import CommandError, call_command

from knowledge import selectors
from knowledge.core.analytic import cost_model
from knowledge.core.analytic.config_table import columns
from knowledge.core.analytic.step_time import stated_rate
from knowledge.core.data.measurement import Measurement, digests
from knowledge.core.domain.catalogue import Catalogue
from knowledge.core.domain.types import Config, Inventory, Source
from knowledge.core.evaluate import evaluation
from knowledge.core.model.fitted_model import FittedModel, hardware_kind
from knowledge.core.predict.store import BadPredictor
from knowledge.importing import service
from knowledge.models import PredictorVersion
from knowledge.predictors import loaded_predictor, predictor_files, training
from knowledge.predictors.model_registry import roll_back
from knowledge.recommendations.recommender import Recommender
from portal.accounts.models import User
from portal.ops.launch.prepare import have_a_predictor
from tests.knowledge.conftest import A100, CATALOGUE, CLUSTER, DATA, NOW

pytestmark = pytest.mark.django_db
SLOWER = 0.5  # the truth of these tests: everything runs at half the prior's rate
LARGER = 1.05  # and takes more than it says


def rows(count: int, seed: int, factor: float = SLOWER) -> list[Measurement]:
    """Return executions on A100s whose rate is the prior's times a factor, and peaks above the prior's.

    Peaks above the memory are invalid.
    """
    random = np.random.default_rng(seed)
    names = ["meta-llama/Llama-3.1-8B", "meta-llama/Llama-3.2-1B", "mistralai/Mistral-7B-v0.1"]
    configs = [
        Config(
            model_name=names[random.integers(3)],
            tuning=("full", "lora")[random.integers(2)],
            gpu_model="A100-SXM4-80GB",
            number_gpus=int(2 ** random.integers(0, 4)),
            tokens_per_sample=int(2 ** random.integers(8, 13)),
            per_device_batch_size=int(2 ** random.integers(0, 7)),
            precision="bfloat16",
            gradient_checkpointing=True,
            sharding="fsdp",
        )
        for _ in range(count)
    ]
    c = columns(configs, CATALOGUE)
    share, rates = LARGER * cost_model.memory(c).total / c.memory, stated_rate(c) * factor
    return [
        Measurement(
            config=config,
            status="ok" if share[i] < 1 else "oom",
            source="synthetic",
            tokens_per_second=float(rates[i]) if share[i] < 1 else None,
            peak_memory_fraction=float(share[i]) if share[i] < 1 else None,
        )
        for i, config in enumerate(configs)
    ]


LEARN, SAVE = evaluation.fit_model, predictor_files.save
REMEMBERED: dict[tuple[str, ...], FittedModel | None] = {}
FILES: dict[tuple[int, ...], bytes] = {}  # by the ids of what was remembered and therefore lives on


@pytest.fixture(autouse=True)
def _train_equal_rows_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Train equal rows only once.

    Most tests begin with the same training, which takes seconds; equal rows teach and write the
    same.
    """

    def learn(some: list[Measurement], kind: str, catalogue: Catalogue) -> FittedModel | None:
        key = (kind, *digests([row for row in some if hardware_kind(row.config) == kind]))
        if key not in REMEMBERED:
            REMEMBERED[key] = LEARN(some, kind, catalogue)
        return REMEMBERED[key]

    def save(knowledge: dict[str, FittedModel], path: Path) -> str:
        key = tuple(map(id, knowledge.values()))
        if key not in FILES:
            SAVE(knowledge, path)
            FILES[key] = path.read_bytes()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(FILES[key])
        return predictor_files.digest(path)

    monkeypatch.setattr(evaluation, "fit_model", learn)
    monkeypatch.setattr(predictor_files, "save", save)


@pytest.fixture
def trained(data_dir: Path) -> PredictorVersion:
    service.store_rows(rows(300, seed=1), NOW)
    version = training.train(now=NOW)
    assert version is not None
    return version


@pytest.mark.one_database
def test_the_first_predictor_is_promoted_and_learns_what_the_prior_gets_wrong(
    trained: PredictorVersion,
) -> None:
    assert trained.active
    assert trained.metrics["throughput_median_ape"] < 0.1
    assert trained.metrics["validity_error"] < 0.1
    found = Recommender.of(Inventory(pools=(A100,))).recommend(model="llama3.2-1b", fixed={}, workload=DATA)
    assert found.predictor_version == trained.number
    assert found.best.source is Source.MODEL
    assert found.evidence[0].source == "synthetic"
    assert Recommender.of(CLUSTER).version == str(trained.number)


@pytest.mark.slow
def test_figures_and_the_version_they_name_are_of_one_predictor(trained: PredictorVersion) -> None:
    recommender = Recommender.of(CLUSTER)
    PredictorVersion.objects.update(active=False)
    found = recommender.recommend(model="llama3.2-1b", fixed={}, workload=DATA)
    assert (found.best.source, found.predictor_version) == (Source.MODEL, trained.number)
    assert recommender.version == str(trained.number)


@pytest.mark.slow
def test_physics_that_answers_for_a_damaged_file_names_no_version(trained: PredictorVersion) -> None:
    PredictorVersion.objects.filter(pk=trained.pk).update(sha256="0" * 64)
    found = Recommender.of(CLUSTER).recommend(model="llama3.2-1b", fixed={}, workload=DATA)
    assert (found.best.source, found.predictor_version) == (Source.PRIOR, None)


@pytest.mark.one_database
def test_the_memory_of_a_recommendation_is_told_as_peaks_taught_it(trained: PredictorVersion) -> None:
    out, stock = io.StringIO(), [{"gpu_model": "A100-SXM4-80GB", "node_sizes": [8]}]
    fixed = {"tuning": "full", "number_gpus": 8}
    request = {"model": "llama3.1-8b", "params": fixed, "inventory": stock}
    call_command("recommend", json=json.dumps(request), stdout=out)
    answer = json.loads(out.getvalue())
    knowledge, config = loaded_predictor.knowledge_of(trained), Config(**answer["options"][0]["config"])
    physics = knowledge["gpu"].memory.physics_
    held, stated = physics.held(columns([config], CATALOGUE)), cost_model.memory(columns([config], CATALOGUE))
    assert answer["memory_parts"]["optimiser"] == pytest.approx(held["optimizer"][0])
    assert answer["memory_parts"]["optimiser"] != pytest.approx(stated.optimizer[0], rel=1e-6)
    peak = answer["options"][0]["peak_memory_bytes"]["value"]
    assert sum(answer["memory_parts"].values()) == pytest.approx(peak, rel=0.03)


@pytest.mark.one_database
def test_nothing_is_trained_before_fifty_new_rows_or_a_day(trained: PredictorVersion) -> None:
    service.store_rows(rows(10, seed=2), NOW)
    assert training.train(now=NOW + timedelta(hours=1)) is None
    assert training.is_due(NOW + timedelta(hours=25))
    service.store_rows(rows(90, seed=3), NOW)
    assert training.is_due(NOW + timedelta(hours=1))


@pytest.mark.one_database
def test_a_worse_predictor_is_kept_but_not_promoted(trained: PredictorVersion) -> None:
    wrong = [replace(row, source="wrong") for row in rows(600, seed=4, factor=5.0)]
    service.store_rows([row for row in wrong if not _held(row)], NOW)
    worse = training.train(now=NOW, force=True)
    assert worse is not None
    assert not worse.active
    assert "worse in throughput" in worse.reason
    assert selectors.active_predictor() == trained


def _held(row: Measurement) -> bool:
    digest = service.imported_values(row)["config_hash"]
    return int(digest[:8], 16) % training.YARDSTICK == 0


def test_an_equal_predictor_is_promoted_and_can_be_rolled_back(trained: PredictorVersion) -> None:
    service.store_rows(rows(100, seed=5), NOW)
    second = training.train(now=NOW + timedelta(days=1), force=True)
    assert second is not None
    assert selectors.active_predictor() == second
    assert roll_back(actor=User.objects.create_user("root"), now=NOW + timedelta(days=2)) == trained
    assert PredictorVersion.objects.filter(active=True).count() == 1


@pytest.mark.one_database
def test_runs_are_judged_by_the_version_that_had_not_learnt_from_them(trained: PredictorVersion) -> None:
    service.store_rows(rows(100, seed=5), NOW)
    taught = selectors.executions().first()
    second = training.train(now=NOW + timedelta(days=1), force=True)
    assert taught is not None
    assert selectors.active_predictor() == second
    assert selectors.predictor_before(taught.pk) == trained
    assert selectors.predictor_before(taught.pk + 1) == second
    assert selectors.predictor_before(1) is None
    first = loaded_predictor.predictor_before(1, CATALOGUE, CLUSTER)
    assert not first.knowledge, "physics answered before the first training"
    assert set(loaded_predictor.predictor_before(taught.pk, CATALOGUE, CLUSTER).knowledge) == {"gpu"}


@pytest.mark.one_database
def test_a_predictor_survives_its_file(trained: PredictorVersion) -> None:
    found = loaded_predictor.knowledge_of(trained)
    assert found is not None
    assert set(found) == {"gpu"}


@pytest.mark.one_database
def test_a_changed_file_is_not_loaded_and_physics_answers(trained: PredictorVersion, data_dir: Path) -> None:
    path = data_dir / "predictors" / trained.path
    path.write_bytes(path.read_bytes() + b"x")
    with pytest.raises(BadPredictor, match="not the file that was written"):
        predictor_files.load(path, trained.sha256, path.parent)
    found = Recommender.of(CLUSTER).recommend(model="llama3.2-1b", fixed={}, workload=DATA)
    assert found.best.source is Source.PRIOR
    assert training.is_due(NOW)


def test_a_start_replaces_a_predictor_that_this_version_cannot_read(
    trained: PredictorVersion, data_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    have_a_predictor()
    assert PredictorVersion.objects.get().active
    assert not capsys.readouterr().err
    (data_dir / "predictors" / trained.path).write_bytes(b"of another version")
    loaded_predictor.load_fitted.cache_clear()
    have_a_predictor()
    assert PredictorVersion.objects.get(active=True).number == trained.number + 1
    assert "it trains a new one" in capsys.readouterr().err


@pytest.mark.one_database
def test_files_from_elsewhere_are_not_loaded(trained: PredictorVersion, data_dir: Path) -> None:
    path = data_dir / "predictors" / trained.path
    elsewhere = data_dir / "elsewhere.skops"
    elsewhere.write_bytes(path.read_bytes())
    with pytest.raises(BadPredictor, match="does not lie"):
        predictor_files.load(elsewhere, trained.sha256, path.parent)


@pytest.mark.one_database
def test_cpu_rows_never_teach_about_gpus(trained: PredictorVersion, data_dir: Path) -> None:
    some = [replace(row, config=replace(row.config, gpu_model="cpu")) for row in rows(60, seed=6)]
    service.store_rows([row for row in some if row.status == "ok"], NOW)
    second = training.train(now=NOW, force=True)
    assert second is not None
    found = loaded_predictor.knowledge_of(second)
    assert found is not None
    assert found["gpu"].seen.gpus == {"A100-SXM4-80GB"}


def test_too_few_rows_train_nothing(data_dir: Path) -> None:
    service.store_rows(rows(20, seed=7), NOW)
    assert training.train(now=NOW, force=True) is None


def test_two_trainings_at_once_leave_one_version_whose_file_is_its_own(
    trained: PredictorVersion, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.store_rows(rows(100, seed=5), NOW)
    monkeypatch.setattr(selectors, "latest_predictor", lambda: None)  # the other one saves only now
    assert training.train(now=NOW, force=True) is None
    loaded_predictor.load_fitted.cache_clear()
    assert loaded_predictor.knowledge_of(PredictorVersion.objects.get()) is not None
    assert [file.name for file in (data_dir / "predictors").iterdir()] == [trained.path]


@pytest.mark.one_database
def test_a_full_disk_leaves_the_version_before_and_no_half_file(
    trained: PredictorVersion, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, data: bytes) -> int:
        path.touch()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(predictor_files, "save", SAVE)
    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(CommandError, match=r"cannot be written.*No space left"):
        call_command("train_predictor")
    assert selectors.active_predictor() == trained
    assert [file.name for file in (data_dir / "predictors").iterdir()] == [trained.path]


@pytest.mark.one_database
def test_what_a_killed_training_left_goes_after_a_day(trained: PredictorVersion, data_dir: Path) -> None:
    old, new = (data_dir / "predictors" / name for name in ("predictor-2-dead.part", "predictor-3-busy.part"))
    for file, age in ((old, 25), (new, 1)):
        file.write_bytes(b"half")
        at = (NOW - timedelta(hours=age)).timestamp()
        os.utime(file, (at, at))
    assert training.train(now=NOW, force=True) is not None
    assert new.exists()
    assert not old.exists()
