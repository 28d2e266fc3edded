"""All kinds of models that the installed transformers knows, beside a kept table."""

from __future__ import annotations

import pytest

from tests.trainer.train.base.shrunk import causal_kinds
from tests.trainer.train.base.sweep import changed, in_words, swept, table

pytestmark = pytest.mark.torch


@pytest.mark.slow
def test_each_kind_comes_to_what_the_table_says():
    now = dict(swept(causal_kinds()))
    before = table()
    for kind in now.keys() - before.keys():
        print(f"{kind}: {now[kind]} (new)")
    assert changed(before, now) == []


def test_a_kind_that_is_gone_or_otherwise_is_named_and_a_new_one_is_no_change():
    before = {"llama": "exact; adapted: q_proj", "opt": "exact; adapted: fc1"}
    assert changed(before, {**before, "new": "exact; adapted: q_proj"}) == []
    assert changed(before, {"llama": "is lost in part; adapted: q_proj"}) == [
        "llama: is lost in part; adapted: q_proj (was: exact; adapted: q_proj)",
        "opt: gone (was: exact; adapted: fc1)",
    ]


def test_what_differs_is_said_in_words():
    from tests.trainer.train.base.examined import Findings

    exact = Findings(adapted=("fc1", "fc2"), loss=1e-7, resumed=0.0, read=1e-7)
    assert in_words(exact) == "exact; adapted: fc1 fc2"
    assert in_words(Findings(reason="It is no model.")) == "refused: It is no model."
    wrong = Findings(loss=1e-3, resumed=1e-9, read=1e-2, warnings=("Lost.",))
    assert in_words(wrong).split("; ")[:4] == [
        "losses differ from a plain loop",
        "goes on otherwise after a stop",
        "is read otherwise",
        "is lost in part",
    ]
