"""A model hub that takes connections and never answers."""

from __future__ import annotations

import socket

import pytest

from tests.trainer.runs import Run

pytestmark = pytest.mark.torch

IMPATIENT = (
    "import os, runpy, sys;"
    "os.environ.update(HF_ENDPOINT='http://127.0.0.1:{port}', HF_HUB_ETAG_TIMEOUT='1');"
    "import trainer.train.base.models; trainer.train.base.models.HUB_ANSWERS_WITHIN_S = 0.3;"
    "sys.argv = ['trainer.run', sys.argv[1]]; runpy.run_module('trainer.run', run_name='__main__')"
)


@pytest.mark.slow
def test_a_hub_that_never_answers_is_waited_for_no_longer_than_said(run: Run):
    """Else the start would end in a time-out of the portal, after ten minutes and without a reason."""
    run.model, run.offline = "some-lab/some-model", False
    with socket.create_server(("127.0.0.1", 0), backlog=64) as silent:
        assert run.write().finish("-c", IMPATIENT.format(port=silent.getsockname()[1])) == 1
    assert run.result["outcome"] == "declined"
    assert "The model hub cannot be reached from this node, or does not answer" in run.result["reason"]
