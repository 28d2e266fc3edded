"""One rule a line: what a clause adds to a form whose model and file are named."""

from __future__ import annotations

from typing import Any

import pytest

from tests.portal.intents.saying import said, unknown, values

NAMED = "phi-4 on poems.jsonl"
FORM = {"model": "microsoft/phi-4", "training_file": "poems.jsonl"}


def deadline(at: str) -> dict[str, Any]:
    return {"deadline_at": at, "goal": "deadline"}


CLAUSES: dict[str, dict[str, Any]] = {
    # numbers, units, corrections
    "1.5k steps": {"max_steps": 1500},
    "1.500 steps": {"max_steps": 1500},
    "two hundred and fifty steps": {"max_steps": 250},
    "half an epoch": {"epochs": 0.5},
    "one and a half epochs": {"epochs": 1.5},
    "½ an epoch": {"epochs": 0.5},
    "1½ epochs": {"epochs": 1.5},
    "1 1/2 epochs": {"epochs": 1.5},
    "¾ of an epoch": {},
    "２ epochs": {"epochs": 2},
    "٢ epochs": {},
    "2² epochs": {},
    "rank ½, budget €½": {},
    "2 epcohs, learnign rate 2e-4": {"epochs": 2, "learning_rate": 2e-4},
    "lr=2x10^-4": {"learning_rate": 2e-4},
    "no more than 2 epochs": {"epochs": 2},
    "more than 2 epochs": {},
    "2-3 epochs": {},
    "3 epochs, no, make that 4": {"epochs": 4},
    "not 3 epochs but 5": {"epochs": 5},
    "rank 16, no wait, 32": {"lora_r": 32},
    "rank of 16 and not 64": {"lora_r": 16},
    "3, 16, 25": {},
    "warmup 100 steps, save every 50 steps": {},
    "seed 42, 3 retries, priority 9": {},
    "batch size 16 epochs 3": {"effective_batch_size": 16, "epochs": 3},
    "batch of 4 per GPU": {"per_device_batch_size": 4},
    "context of 8,192 tokens": {"tokens_per_sample": 8192},
    "the last run took 3 hours on 2 A100s, lora": {"tuning": "lora"},
    "rank/alpha 16/32": {"lora_r": 16, "lora_alpha": 32},
    "lora r16 a32": {"tuning": "lora", "lora_r": 16, "lora_alpha": 32},
    "rank 8... no 16": {"lora_r": 16},
    "last year we did 5 epochs": {},
    "two epochs at 1e-5": {"epochs": 2, "learning_rate": 1e-5},
    "batch of 128 with micro-batches of 4": {"effective_batch_size": 128, "per_device_batch_size": 4},
    "don't go below 4 GPUs and not over 8": {},
    "not over 4 GPUs": {"number_gpus": 4},
    "don't use more than 4 GPUs": {"number_gpus": 4},
    "fewer than 4 GPUs": {},
    "nothing dearer than 15 euros": {"budget": 15, "goal": "budget"},
    # tunings
    "4-bit": {"tuning": "qlora"},
    "all weights, not LoRA": {"tuning": "full"},
    "full speed": {},
    "ddp off, fsdp instead": {"sharding": "fsdp"},
    "no gradient checkpointing": {"gradient_checkpointing": False},
    "don't use gradient checkpointing": {"gradient_checkpointing": False},
    "w/o lora": {},
    "I'd rather have qlora than full": {"tuning": "qlora"},
    "rather no more than 2 epochs": {"epochs": 2},
    "half precision": {"precision": "float16"},
    # GPUs
    "2 nodes with 4 L40S each": {"number_nodes": 2, "number_gpus": 8, "gpu_model": "L40S"},
    "on 8x8 A100": {"number_nodes": 8, "number_gpus": 64, "gpu_model": "A100-SXM4-80GB"},
    "A100 x 4": {"number_gpus": 4, "gpu_model": "A100-SXM4-80GB"},
    "8 GPUs on two nodes": {"number_gpus": 8, "number_nodes": 2},
    "one node of 8": {"number_gpus": 8, "number_nodes": 1},
    "A100:4": {"number_gpus": 4, "gpu_model": "A100-SXM4-80GB"},
    "on both A100 nodes": {"number_nodes": 2, "gpu_model": "A100-SXM4-80GB"},
    "not on A100s": {},
    "set the A100 price to 0": {},
    "raise my quota to 8 GPUs": {},
    "my 24 GB card": {},
    # money
    "€1,250.50 at most": {"budget": 1250.5, "goal": "budget"},
    "don't spend more than 15": {"budget": 15, "goal": "budget"},
    "nothing over 25 euros": {"budget": 25, "goal": "budget"},
    "thirty euros": {"budget": 30, "goal": "budget"},
    "budget 25-30": {},
    "€20-30": {},
    "under 30 minutes": {},
    "2 euros per GPU hour": {},
    "budget 40 — sorry, 60": {"budget": 60, "goal": "budget"},
    # time
    "by Tuesday": deadline("2026-03-17T18:00:00+01:00"),
    "by Friday, no, Saturday": deadline("2026-03-14T18:00:00+01:00"),
    "tonight": deadline("2026-03-11T00:00:00+01:00"),
    "by 12 March": deadline("2026-03-12T18:00:00+01:00"),
    "by 2026-03-12T08:15": deadline("2026-03-12T08:15:00+01:00"),
    "before 3/13": deadline("2026-03-13T18:00:00+01:00"),
    "by the 15th at noon": deadline("2026-03-15T12:00:00+01:00"),
    "due Wendesday at half past eight pm": deadline("2026-03-11T20:30:00+01:00"),
    "in an hour and a half": deadline("2026-03-10T16:30:00+01:00"),
    "in 2 days": deadline("2026-03-12T15:00:00+01:00"),
    "Friday EOD": deadline("2026-03-13T18:00:00+01:00"),
    "needed Thursday morning": deadline("2026-03-12T09:00:00+01:00"),
    "in max. 5 h": deadline("2026-03-10T20:00:00+01:00"),
    "by close of business tomorrow": deadline("2026-03-11T18:00:00+01:00"),
    "monday's batch": {},
    "for 2 hours": {},
    "it takes 2 hours": {},
    "over the weekend": {},
    "start at 9pm": {},
    "today I am here": {},
    "I have a demo on Friday at 9am": {},
    "an export of 12 March": {},
    "you may take your time": {},
    # goals
    "asap": {"goal": "fastest"},
    "no hurry, keep costs down": {"goal": "cheapest"},
    "cheap but fast": {"goal": "balanced"},
    "by tomorrow, 20 euros, fast": {
        "deadline_at": "2026-03-11T18:00:00+01:00",
        "budget": 20,
        "goal": "budget",
    },
    # facts, others' values, and limits of other things
    "My file has 12,000 rows of about 300 tokens": {},
    "answers have up to 200 tokens": {},
    "train for 1,000,000 tokens": {},
    "I want it to answer in at most 3 steps": {},
    "samples of 300 tokens, 2048 tokens": {"tokens_per_sample": 2048},
    "each node has 8 GPUs": {},
    "at least 2 epochs": {},
    "vocabulary of 32k tokens": {},
    "the poems were written before 12 March": {},
    "the license expires on 20 March": {},
    "eval batch size 4, train batch size 16": {"effective_batch_size": 16},
    "our last run with rank 64 and lr 3e-4 diverged, so use rank 16": {"lora_r": 16},
    "the readme suggests 4 epochs": {},
    "someone said rank 128, I say rank 8": {"lora_r": 8},
    "I have already spent 80 euros": {},
    "the price of an A100 should be 1.50 EUR an hour from now on": {},
    "stop when the loss is under 1": {},
    "keep GPU hours under 40": {},
    "my file was uploaded on Friday at 5pm": {},
    "do not start before Friday 8:00": {},
    "start it at noon, finish by Wednesday 20:00": deadline("2026-03-11T20:00:00+01:00"),
    "start it now and have it ready by Friday": deadline("2026-03-13T18:00:00+01:00"),
    "max_retries=4, random_state=3407, save_total_limit 2": {},
    # team and name
    "for the nlp team": {"team": "nlp"},
    "for the finance team": {},
    'call it "Spring poems 2"': {"name": "Spring poems 2"},
}


def test_a_team_may_stand_before_the_wish() -> None:
    assert values(f"for nlp: {NAMED}") == FORM | {"team": "nlp"}
    assert "team" not in values(f"for poems: {NAMED}")


def test_a_wish_may_follow_one_about_quotas() -> None:
    assert values("set my quota to 100 euros and train phi-4 on poems.jsonl") == FORM


@pytest.mark.parametrize("clause", CLAUSES)
def test_a_clause_adds_these_fields_and_no_others(clause: str) -> None:
    assert values(f"{NAMED}, {clause}") == FORM | CLAUSES[clause]
    assert values(f"{clause}: {NAMED}")["model"] == FORM["model"]


MODELS = {
    "llama3.1:8b": "meta-llama/Llama-3.1-8B",
    "Mixtral-8x7B-Instruct-v0.1": "mistralai/Mixtral-8x7B-Instruct-v0.1",
    "mixtral 8x7b": "mistralai/Mixtral-8x7B-v0.1",
    "lama 3.1 8B instrct": "meta-llama/Llama-3.1-8B-Instruct",
    "the 8b llama 3.1, instruct version": "meta-llama/Llama-3.1-8B-Instruct",
    "Qwen 2.5 7B Coder": "Qwen/Qwen2.5-Coder-7B",
    "code llama 34b": "codellama/CodeLlama-34b-hf",
    "gemma, the 9b,": "google/gemma-2-9b",
    "my-org/my-llama-7b": "my-org/my-llama-7b",
    "tiny-llama": "builtin/tiny-llama",
    "not llama-2-7b but llama-3.1-8b": "meta-llama/Llama-3.1-8B",
    "gemma-2-2b, sorry, I meant phi-2,": "microsoft/phi-2",
    # digits, dots and glued words must agree
    "llama 70b": None,
    "Qwen2.5-8B": None,
    "mistral 7b v0.9": None,
    "llama-3.1-8b-german": None,
    "GPT-4": None,
    "mixtral": None,
    "qwen2.5 7b vs llama 3.1 8b": None,
    "llama 3.1 8b, err, the 70b": None,
    "llama 3.1 8b or the 70b": None,
    "/models/llama-3.1-8b": None,
    "https://huggingface.co/microsoft/phi-4": None,
    "mistrаl 7b": None,  # a Cyrillic letter
}


@pytest.mark.parametrize("name", MODELS)
def test_a_model_is_one_of_the_catalogue_or_asked_for(name: str) -> None:
    text = f"{name} on poems.jsonl"
    assert values(text).get("model") == MODELS[name]
    question = said(text).question
    assert (question and question.field) == (None if MODELS[name] else "model")


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("phi-4", "training_file"),
        ("phi-4 on tickets-2024.jsonl", "training_file"),
        ("phi-4 on /home/me/poems.jsonl", "training_file"),
        ("phi-4 on poems.jsonl, 3 epochs, 500 steps", "epochs"),
        ("phi-4 on poems.jsonl on an H100", "gpu_model"),
        ("phi-4 on poems.jsonl by 04/05/2026", "deadline_at"),
        ("phi-4 on poems.jsonl by tomorrow at 8", "deadline_at"),
        ("phi-4 on poems.jsonl, lora or qlora", "tuning"),
        ("hi", "model"),
        ("Bitte trainiere ein Modell mit meinen Daten bis Freitag", "model"),
    ],
)
def test_what_is_open_is_asked_once_and_left_empty(text: str, field: str) -> None:
    reading = said(text)
    assert reading.question is not None
    assert reading.question.field == field
    assert field not in reading.fields


@pytest.mark.parametrize(
    ("clause", "field"),
    [
        ("for $50", "budget"),
        ("budget 1e400", "budget"),
        ("by 31 April", "deadline_at"),
        ("by 29 February", "deadline_at"),
    ],
)
def test_a_value_that_cannot_be_is_complained_about_and_unset(clause: str, field: str) -> None:
    reading = said(f"{NAMED}, {clause}")
    assert field in reading.complaints
    assert field not in reading.fields


def test_a_second_currency_is_complained_about() -> None:
    for clause in ("20 euros or 30 dollars", "at most €20 or $25", "for $20 and 30 pounds"):
        assert "converts nothing" in said(f"{NAMED}, {clause}").complaints["budget"]


def test_files_are_found_by_words_of_one_name_and_by_the_newest_job() -> None:
    assert values("phi-4 on my tickets")["training_file"] == "tickets-2025.jsonl"
    assert values("phi-4 on the same data as last time")["training_file"] == "tickets-2025.jsonl"
    files = ("essays_v2.jsonl", "essays_v1.jsonl")
    assert "training_file" not in values("phi-4 on the essays", files=files)
    assert values("phi-4 on the essays, v2", files=files)["training_file"] == "essays_v2.jsonl"


@pytest.mark.parametrize(
    ("text", "field", "value"),
    [
        ("by March 14 at 8 in the morning", "deadline_at", "2026-03-14T08:00:00+01:00"),
        ("by tomorrow at three in the afternoon", "deadline_at", "2026-03-11T15:00:00+01:00"),
        ("by 7 in the evening", "deadline_at", "2026-03-10T19:00:00+01:00"),
        ("by March 9 in the morning", "deadline_at", None),
        ("in half precision bfloat16", "precision", "bfloat16"),
        ("in half precision", "precision", "float16"),
        ("10k steps, 3e-4", "learning_rate", 3e-4),
        ("lr 1e-4, weight decay 1e-3", "learning_rate", 1e-4),
        ("money is tight", "goal", "cheapest"),
    ],
)
def test_words_that_only_their_neighbours_explain(text: str, field: str, value: object) -> None:
    found = values(f"qwen2.5-7b on poems.jsonl {text}").get(field)
    assert found == value or (value is None and found != "2026-03-10T09:00:00+01:00")


@pytest.mark.parametrize("number", ["¾", "٣", "2²", "③", "3/4"])
def test_numbers_that_are_not_read_are_listed(number: str) -> None:
    assert unknown(f"{NAMED}, {number} epochs") == [number]


def test_of_models_that_differ_in_versions_the_reason_names_the_others() -> None:
    model = said("Fine-tune Mistral 7B on support-faq.jsonl").fields["model"]
    assert "Mistral-7B-v0." in model.value
    assert "also fit" in model.note
    assert model.value not in model.note
    assert "Instruct" not in model.note
    exact = said("Fine-tune Mistral-7B-v0.3 on support-faq.jsonl").fields["model"]
    assert exact.note == ""
    assert said("Fine-tune Llama-3.1-8B on support-faq.jsonl").fields["model"].note == ""
