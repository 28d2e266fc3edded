"""GPUs with a history and CPU slots without any, asked at once."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest

from knowledge.core.domain.types import Source
from tests.knowledge.core.predict.test_foreign_software import learnt
from tests.knowledge.core.predict.test_peak_correction import OTHER, config, scores

GPUS = [replace(config(batch=batch, gpu=OTHER), software="stack 1.2") for batch in (1, 3)]
SLOTS = [config(batch=batch, tokens=256, gpu="cpu") for batch in (1, 2)]


def test_each_kind_is_answered_as_if_it_were_asked_alone() -> None:
    predictor = learnt(1.3)
    both = scores(predictor, [*GPUS, *SLOTS])
    apart = [scores(predictor, some) for some in (GPUS, SLOTS)]
    assert list(both.source) == [Source.MODEL] * 2 + [Source.PRIOR] * 2
    for name in (field.name for field in fields(both) if field.name != "source"):
        alone = np.concatenate([getattr(each, name) for each in apart])
        assert getattr(both, name) == pytest.approx(alone), name
