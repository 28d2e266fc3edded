"""Why a job failed knows every reason that our own trainer and agent can give."""

from __future__ import annotations

import pytest

from knowledge.reading.failures.causes import CAUSES
from knowledge.reading.failures.explaining import CODE, UNKNOWN, Explanation, FailureFacts, explain_failure
from knowledge.reading.failures.own_reasons import OWN_REASONS
from knowledge.reading.failures.troubled_lines import LogLine
from tests.knowledge.reading.failures.own_reasons import ENDING, OwnReason, own_reasons

REASONS = list(own_reasons())
# A sample of each kind with its cause: the others must merely have one.
SAMPLES = {
    "The checkpoint is of other tokens: the data, the tokenizer, its chat template or the software that reads"
    " them changed. Submit the job anew.": "checkpoint",
    "The tuning qlora needs a GPU; choose lora to train on CPU slots.": "unfit-settings",
    "fsdp goes with full or lora in bfloat16 or float32; choose those, or ddp.": "unfit-settings",
    "acme/x has 2,048 positions: choose at most 2,048 tokens per sample.": "unfit-settings",
    "The model's chat template does not show it the tools of the data. Choose another.": "unshown-data",
    "The tuning qlora needs the package bitsandbytes on this node; install it.": "missing-package",
    "acme/x has no attention to adapt; choose all-linear as target_modules.": "unfit-settings",
    "acme/x is a t5; only models that continue text (causal language models) can be": "unsuitable-model",
    "The files of acme/x lack weights of the model: lm_head.weight.": "missing-model",
    "The files of acme/x hold quantised weights: full fine-tuning cannot train them": "unfit-settings",
    "In acme/x a token sees those after it, so that nothing is left to predict.": "unsuitable-model",
    "The model acme/x does not read plain text: input_ids missing": "unsuitable-model",
    "no port from 29500 to 29599 is free; see --ports": "node-trouble",
    "disk full: 12,000 bytes are free and 400,000 are needed": "disk-full",
    "12.5 GiB of GPU 0 (GPU-1) are in use, though no job of the portal runs there": "gpu-taken",
    "the training of claim 7 has not left its GPUs yet": "gpu-taken",
    "notes.json cannot be used: line 3: prompt is missing": "bad-data",
    "the portal has lost inputs/train.jsonl: 404": "lost-file",
    "input inputs/train.jsonl could not be fetched: timed out": "portal-away",
    "the training exited with 3 and no result": "crash",
    "the training exited with 137 and no result": "killed",
}


def explained(text: str, reason: str = "") -> Explanation:
    lines = [LogLine(at, line) for at, line in enumerate(["loading acme/x", *text.splitlines()], start=1)]
    return explain_failure(lines, FailureFacts(outcome="error", reason=reason))


@pytest.mark.parametrize("reason", REASONS, ids=[one.text[:60] for one in REASONS])
def test_each_reason_has_a_cause_and_a_remedy_in_the_log_and_as_reported(reason: OwnReason) -> None:
    """Where this fails: a reason is new; add its beginning to `knowledge/reading/failures/own_reasons.py`."""
    for found in (explained(reason.text), explained("", reason.text)):
        assert found.cause.name not in {UNKNOWN, CODE}, f"{reason.place}: {reason.text}"
        assert found.remedy
        assert found.line is not None
        assert found.line.text[:60] in reason.text


def test_the_enumeration_sees_all_places_that_end_a_training() -> None:
    """Each file that raises such an error gives a reason that is read, but for what only passes one on."""
    files = {one.place.partition(":")[0] for one in REASONS}
    assert {
        "train/settings.py",
        "train/base/suitable.py",
        "train/data/template.py",
        "train/process.py",
    } <= files
    assert {"agent/claims/outcome.py", "agent/claims/manager.py", "agent/node/network.py"} <= files
    assert len(REASONS) > 80
    assert {"TrainError", "Declined"} <= ENDING


@pytest.mark.parametrize(("text", "cause"), SAMPLES.items())
def test_the_cause_of_a_reason(text: str, cause: str) -> None:
    assert explained(text).cause.name == explained("", text).cause.name == cause


def test_every_rule_has_a_cause_and_none_is_for_nothing() -> None:
    assert {rule.cause for rule in OWN_REASONS} <= set(CAUSES)
    texts = [*SAMPLES, *(one.text for one in REASONS)]
    assert not [rule for rule in OWN_REASONS if not any(map(rule.expression.search, texts))]
