"""Statements of trees of scripts: own ones, in the conventions of the trainers that people come from."""

from __future__ import annotations

from typing import Any

import pytest

from knowledge.reading.reader import read
from knowledge.reading.types import Location, Reading, Tree


def reading(files: dict[str, str], command: str | None = None) -> Reading:
    return read(Tree(files, command))


def values(found: Reading) -> dict[str, Any]:
    return {name: value.value for name, value in found.values.items()}


def test_a_command_wins_over_the_file_that_it_names() -> None:
    files = {
        "train.py": "import sys\n",
        "c.yaml": "model_name_or_path: acme/base-8b\nmicro_batch_size: 4\ngradient_accumulation_steps: 8\n",
    }
    found = reading(files, "torchrun --nproc_per_node 4 train.py --config c.yaml --micro_batch_size 2")
    batch = found.values["per_device_batch_size"]
    assert (batch.value, batch.confidence, batch.evidence[0]) == (2, 1.0, Location("command", 1))
    assert [(one.value, one.place) for one in batch.overridden] == [(4, Location("c.yaml", 2))]
    effective = found.values["effective_batch_size"]
    assert (effective.value, effective.derived) == (64, True)
    assert values(found)["base_model"] == "acme/base-8b"


def test_of_an_option_given_twice_the_last_counts() -> None:
    found = reading({"train.py": "import sys\n"}, "python train.py --lr 1e-4 --epochs 2 --lr 5e-5")
    rate = found.values["learning_rate"]
    assert (rate.value, [one.value for one in rate.overridden]) == (5e-5, [1e-4])
    job = {"job.sh": "#SBATCH --nodes=2\npython train.py --lr 1e-4\n", "train.py": "import sys\n"}
    assert values(reading(job, "sbatch --nodes=4 job.sh"))["number_nodes"] == 4


SLURM = """#!/bin/bash
#SBATCH --nodes=2
#SBATCH --gres=gpu:a100:4
LR=2e-5
LENGTH=${LENGTH:-4096}
ARGS="--num_train_epochs 3 \\
  --learning_rate $LR"
srun torchrun --nproc_per_node 4 train.py --model_name_or_path "$1" $ARGS \\
  --max_seq_length $LENGTH --seed $SLURM_ARRAY_TASK_ID
"""


def test_variables_stand_where_they_are_assigned_and_unknown_ones_state_nothing() -> None:
    found = reading({"job.slurm": SLURM}, "sbatch job.slurm acme/base-8b")
    assert values(found) == {
        "number_nodes": 2,
        "number_gpus": 8,
        "gpu_model": "a100",
        "base_model": "acme/base-8b",
        "epochs": 3,
        "learning_rate": 2e-5,
        "tokens_per_sample": 4096,
    }
    assert found.values["learning_rate"].evidence[0] == Location("job.slurm", 4)
    assert found.values["tokens_per_sample"].evidence[0] == Location("job.slurm", 5)
    assert found.values["base_model"].evidence[0] == Location("command", 1)


SCRIPT = """
import argparse
from peft import LoraConfig
from transformers import AutoModelForCausalLM, BitsAndBytesConfig
from trl import SFTConfig, SFTTrainer

NAME = "acme/base-1b"  # batch size 128 is what the reader should note

def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bs", type=int, default=6)
    parser.add_argument("--lr", type=float, default=1e-4)
    args = parser.parse_args()
    model = AutoModelForCausalLM.from_pretrained(
        NAME, quantization_config=BitsAndBytesConfig(load_in_4bit=True)
    )
    SFTTrainer(
        model,
        args=SFTConfig(per_device_train_batch_size=args.bs, learning_rate=args.lr, max_length=2 * 512),
        peft_config=LoraConfig(r=24, target_modules=["q_proj", "v_proj"]),
    ).train()
"""


def test_options_mean_what_their_values_are_passed_to() -> None:
    found = reading({"train.py": SCRIPT}, "python train.py --bs 12")
    assert values(found) == {
        "task": "sft",
        "base_model": "acme/base-1b",
        "tuning": "qlora",
        "lora_r": 24,
        "target_modules": ["q_proj", "v_proj"],
        "quantization": "bnb-4bit",
        "tokens_per_sample": 1024,
        "per_device_batch_size": 12,
        "learning_rate": 1e-4,
    }
    assert found.values["learning_rate"].confidence == 0.7  # a default may be overridden elsewhere
    assert found.values["per_device_batch_size"].confidence == 1.0


@pytest.mark.parametrize(
    ("files", "command", "expected"),
    [
        (
            {"a.yml": "adapter: qlora\nload_in_4bit: true\nnum_epochs: 4\nsequence_len: 4k\nbf16: auto\n"},
            "axolotl train a.yml",
            {"tuning": "qlora", "quantization": "bnb-4bit", "epochs": 4, "tokens_per_sample": 4096}
            | {"precision": "bfloat16"},
        ),
        (
            {"b.yaml": "stage: sft\nfinetuning_type: lora\nquantization_bit: 4\ncutoff_len: 1024\n"},
            "llamafactory-cli train b.yaml",
            {"task": "sft", "tuning": "qlora", "quantization": "bnb-4bit", "tokens_per_sample": 1024},
        ),
        (
            {"c.toml": '[training]\nlocal_batch_size = 8\nsteps = 10\n[optimizer]\nname = "AdamW"\n'
             "lr = 8e-4\n"},
            "torchrun --nproc_per_node=8 t.py --job.config_file c.toml",
            {"number_gpus": 8, "per_device_batch_size": 8, "max_steps": 10, "optimizer": "AdamW"}
            | {"learning_rate": 8e-4},
        ),
        (
            {"d.json": '{"train_batch_size": 64, // all\n "train_micro_batch_size_per_gpu": 4,\n'
             ' "zero_optimization": {"stage": 3},\n "bf16": {"enabled": true}}'},
            "deepspeed --num_gpus 8 x.py --deepspeed d.json",
            {"number_gpus": 8, "effective_batch_size": 64, "per_device_batch_size": 4, "sharding": "zero3"}
            | {"precision": "bfloat16", "gradient_accumulation_steps": 2},
        ),
        ({"e.yaml": "max_duration: 3ep\nt_warmup: 50ba\nmodel:\n  name: kind\n"}, "composer t.py e.yaml",
         {"epochs": 3, "warmup": 50, "base_model": "kind"}),
        ({"main.py": "print('hello')\n", "README.md": "learning rate 1e-4\n"}, "python main.py", {}),
    ],
)  # fmt: skip
def test_the_conventions_of_common_trainers(
    files: dict[str, str], command: str, expected: dict[str, Any]
) -> None:
    assert values(reading(files, command)) == expected


def test_a_configuration_that_is_not_used_states_nothing() -> None:
    files = {"new.yaml": "epochs: 2\n", "old.yaml": "epochs: 9\nseed: 4\n", "train.py": "x = 1\n"}
    assert values(reading(files, "python train.py --config new.yaml")) == {"epochs": 2}


def test_merged_anchors_count_where_they_are_merged() -> None:
    text = "base: &b\n  lr: 1e-5\n  micro_batch_size: 1\nrun:\n  <<: *b\n  micro_batch_size: 2\n"
    found = reading({"t.yml": text}, "python go.py t.yml")
    assert values(found) == {"learning_rate": 1e-5, "per_device_batch_size": 2}


def test_contradictions_show_both_sides_and_fill_neither() -> None:
    files = {"a.yaml": "lr: 1e-4\nepochs: 2\nmax_steps: 100\n", "b.yaml": "lr: 2e-4\n"}
    found = reading(files, "python t.py --config a.yaml --extra b.yaml")
    assert values(found) == {}
    assert {name: [one.value for one in both] for name, both in found.contradictions.items()} == {
        "learning_rate": [1e-4, 2e-4],
        "epochs+max_steps": [2, 100],
    }


def test_a_product_that_differs_is_a_contradiction() -> None:
    text = "global_batch_size: 256\nmicro_batch_size: 8\ngradient_accumulation_steps: 4\nnum_gpus: 4\n"
    found = reading({"a.yaml": text}, "python t.py a.yaml")
    assert [one.value for one in found.contradictions["effective_batch_size"]] == [256, 128]


def test_hydra_takes_the_groups_that_the_command_chooses() -> None:
    files = {
        "train.py": "@hydra.main(config_path='conf', config_name='config')\ndef main(cfg): pass\n",
        "conf/config.yaml": "defaults:\n  - trainer: small\nseed: 3\n",
        "conf/trainer/small.yaml": "max_epochs: 1\n",
        "conf/trainer/large.yaml": "max_epochs: 5\n",
    }
    assert values(reading(files, "python train.py trainer=large")) == {"seed": 3, "epochs": 5}


def test_files_that_cannot_be_parsed_are_named_and_give_no_evidence() -> None:
    files = {"train.py": "print 'python 2'\nlr = 1e-4\n", "c.yaml": "a: [1, 2\nepochs: 3\n"}
    found = reading(files, "python train.py --config c.yaml --seed 7")
    assert values(found) == {"seed": 7}
    assert set(found.unreadable) == {"train.py", "c.yaml"}


def test_what_the_trainer_cannot_do_is_named() -> None:
    files = {"t.py": "class T(DPOTrainer):\n  def compute_loss(self): pass\nDPOTrainer(x)\n"}
    assert reading(files, "python t.py").unsupported == ("dpo", "custom_loss")


CONFIG = {"c.yaml": "model: acme/base-8b\nlearning_rate: 1e-5\nlora_parameters:\n  rank: 8\n"}


@pytest.mark.parametrize(
    "command",
    [
        "mlx_lm.lora --config c.yaml",
        "ludwig train --config c.yaml",
        "oumi distributed torchrun -m oumi train -c c.yaml",
        'srun --container-image=x bash -c "some-trainer train --config c.yaml"',
        "some-trainer train c.yaml > log.txt 2>&1",
    ],
)
def test_programs_that_nobody_knows_train_with_the_configuration_that_they_name(command: str) -> None:
    assert values(reading(CONFIG, command)) == {
        "base_model": "acme/base-8b",
        "learning_rate": 1e-5,
        "lora_r": 8,
        "tuning": "lora",
    }


@pytest.mark.parametrize("command", ["cp c.yaml out/", "cat c.yaml", "some-trainer evaluate --what c.yaml"])
def test_programs_that_do_not_train_state_nothing(command: str) -> None:
    assert values(reading(CONFIG, command)) == {}


def test_a_program_with_many_options_of_a_training_trains() -> None:
    found = reading(
        {}, "fairseq-train data --lr 5e-4 --max-update 300 --seed 3 --update-freq 8 2>&1 | tee log"
    )
    assert values(found) == {
        "learning_rate": 5e-4,
        "max_steps": 300,
        "seed": 3,
        "gradient_accumulation_steps": 8,
    }


def test_a_configuration_in_python_wins_over_the_script() -> None:
    files = {"train.py": "learning_rate = 6e-4\nmax_iters = 9000\n", "tuned.py": "learning_rate = 3e-5\n"}
    found = reading(files, "python train.py tuned.py")
    assert values(found) == {"learning_rate": 3e-5, "max_steps": 9000}
    assert found.values["learning_rate"].evidence[0] == Location("tuned.py", 1)


def test_gpus_that_share_a_model_are_no_copies_of_it() -> None:
    command = "torchrun --nproc_per_node 8 t.py --micro-batch-size 1 --global-batch-size 64"
    assert values(reading({}, command))["gradient_accumulation_steps"] == 8
    shared = f"{command} --pipeline-model-parallel-size 1 --tensor-model-parallel-size 2"
    assert "gradient_accumulation_steps" not in values(reading({}, shared))


@pytest.mark.parametrize(
    "gpus", ["composer -n 4 t.py", "python -m paddle.distributed.launch --gpus 0,1,2,3 t.py"]
)
def test_launchers_count_gpus_in_their_own_ways(gpus: str) -> None:
    assert values(reading({"t.py": ""}, gpus))["number_gpus"] == 4


@pytest.mark.parametrize("text", ["a\\0b", "a\\ud800b", "x" * 30_000])
def test_what_no_database_keeps_is_not_stated(text: str) -> None:
    script = f'from transformers import AutoModel, TrainingArguments\nAutoModel.from_pretrained("{text}")\n'
    found = reading({"train.py": script + "TrainingArguments(num_train_epochs=2)\n"})
    assert values(found) == {"epochs": 2}


def test_a_rule_of_a_makefile_is_shell() -> None:
    command = "python train.py \\\n    --learning_rate=3e-5 --num_train_epochs 7"
    make = f"all: x\n\ntune: data\n\t@{command}\n\ntest:\n\tpytest\n"
    found = reading({"Makefile": make, "train.py": "import transformers\n"}, "make tune")
    assert (found.values["epochs"].value, found.values["learning_rate"].value) == (7, 3e-5)
    assert found.values["epochs"].evidence[0].file == "Makefile"
    assert values(reading({"Makefile": make}, "make test")) == {}


def test_a_module_of_the_tree_is_its_file() -> None:
    script = "from trl import SFTConfig\nSFTConfig(learning_rate=1e-6)\n"
    assert values(reading({"own/train.py": script}, "python -m own.train"))["learning_rate"] == 1e-6


def test_alternatives_of_a_mapping_state_only_what_they_share() -> None:
    script = (
        "MODELS = {'small': {'lr': 2e-4, 'epochs': 3, 'lora_r': 8},"
        " 'big': {'lr': 1e-4, 'epochs': 3, 'lora_r': 16}}\n"
    )
    assert values(reading({"train.py": script})) == {"epochs": 3}
