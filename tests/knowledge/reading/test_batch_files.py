"""Batch files of Windows: the same values as a shell script's, on their own lines."""

from __future__ import annotations

from typing import Any

import pytest

from knowledge.reading.reader import read
from knowledge.reading.syntax.batch import as_shell
from knowledge.reading.types import Location, Reading, Tree
from tests.harness import hostile

TRAIN = r"""@echo off
setlocal enabledelayedexpansion
rem set LR=1e-3
:: the usual model
set MODEL=acme/base-8b
SET "LR=2e-5"
set /a BATCH=2*4
if not defined EPOCHS set EPOCHS=3
if "%LENGTH%"=="" (set LENGTH=4096)
set ARGS=--gradient_accumulation_steps 8 ^
  --warmup_ratio 0.03
call conda activate train
if exist out (
  rmdir /s /q out
) else (
  mkdir out
)
"%~dp0venv\Scripts\python.exe" -u scripts\train.py ^
  --model_name_or_path %model% ^
  --dataset "%DATA%\%1" --train_file %~dp0data\rows.jsonl ^
  --per_device_train_batch_size !BATCH! --learning_rate %LR% ^
  --num_train_epochs %EPOCHS% --max_seq_length %LENGTH% %ARGS% ^
  --seed %RANDOM_SEED% >log.txt 2>&1
if errorlevel 1 goto :failed
pause
"""
STATED = {
    "base_model": ("acme/base-8b", 5),
    "learning_rate": (2e-5, 6),
    "per_device_batch_size": (8, 7),
    "epochs": (3, 8),
    "tokens_per_sample": (4096, 9),
    "gradient_accumulation_steps": (8, 10),
    "warmup": (0.03, 11),
}


def reading(files: dict[str, str], command: str | None = None) -> Reading:
    return read(Tree(files, command))


def values(found: Reading) -> dict[str, Any]:
    return {name: value.value for name, value in found.values.items()}


def test_values_stand_on_the_lines_of_the_batch_file() -> None:
    found = reading({"train.bat": TRAIN, "scripts/train.py": "import sys\n"})
    stated = {name: (found.values[name].value, found.values[name].evidence[0].line) for name in STATED}
    assert stated == STATED
    assert {one.file for name in STATED for one in found.values[name].evidence} == {"train.bat"}
    assert "seed" not in found.values


@pytest.mark.parametrize("command", ["train.bat", r".\train.bat", "cmd /c train.bat", "call train.bat rows"])
def test_a_command_starts_a_batch_file(command: str) -> None:
    files = {"train.bat": TRAIN, "other.sh": "python x.py --lr 1\n", "scripts/train.py": "import sys\n"}
    assert values(reading(files, command))["learning_rate"] == 2e-5


def test_arguments_and_files_called_from_it_are_followed() -> None:
    files = {
        "run.cmd": "call setup.bat\ncall train.bat 4 acme/base-8b\n",
        "train.bat": "torchrun.exe --nproc_per_node %1 -m train --config %~dp0conf\\c.yaml --model %~2\n",
        "setup.bat": "pip install -r requirements.txt\n",
        "train.py": "import transformers\n",
        "conf/c.yaml": "learning_rate: 3e-5\nmicro_batch_size: 2\n",
    }
    found = reading(files, "run.cmd")
    assert values(found) | {"learning_rate": 3e-5, "per_device_batch_size": 2} == values(found)
    assert found.values["learning_rate"].evidence[0] == Location("conf/c.yaml", 1)
    assert (values(found)["number_gpus"], values(found)["base_model"]) == (4, "acme/base-8b")


@pytest.mark.parametrize(
    "line",
    [
        "for %%e in (1 2 3) do python train.py --num_train_epochs %%e --lr 1e-4",
        "python train.py --num_train_epochs %EPOCHS:~0,1% --lr 1e-4",
        "set /p EPOCHS=How many? \npython train.py --num_train_epochs %EPOCHS% --lr 1e-4",
        "python train.py --num_train_epochs %NEVER_SET% --lr 1e-4",
        "rem set EPOCHS=3\npython train.py --num_train_epochs %EPOCHS% --lr 1e-4",
        "echo --num_train_epochs 3\npython train.py --lr 1e-4",
    ],
)
def test_what_cannot_be_known_states_nothing(line: str) -> None:
    found = values(reading({"t.bat": line, "train.py": "import sys\n"}, "t.bat"))
    assert found["learning_rate"] == 1e-4
    assert "epochs" not in found


def test_a_pasted_command_of_windows_is_read() -> None:
    command = "set LR=2e-5\nset CUDA_VISIBLE_DEVICES=0\npy -3.10 train.py ^\n --lr %LR% ^\n --epochs 2"
    assert values(reading({"train.py": "import sys\n"}, command)) == {"learning_rate": 2e-5, "epochs": 2}


def test_a_later_value_wins_and_texts_may_grow() -> None:
    text = "set A=--lr 1e-4\nset A=%A% --epochs 2\nset LR=1\nset lr=5e-5\npython train.py %A% --lr %LR%\n"
    found = values(reading({"t.bat": text, "train.py": "import sys\n"}, "t.bat"))
    assert (found["learning_rate"], found["epochs"]) == (5e-5, 2)


@pytest.mark.parametrize(
    "line",
    [
        "cd /d scripts && python train.py --lr 1e-4 --epochs 2 2>&1",
        "echo on & set LR=1e-4& set E=2& python train.py --lr %LR% --epochs %E% | tee log.txt",
        'if exist "a b" (python train.py --lr 1e-4 --epochs 2)',
        'set "NOTE=a & b" & call conda activate x && python train.py ^\n --lr 1e-4 --epochs 2',
        "(set LR=1e-4)\nif defined X (set E=2)\npython train.py --lr %LR% --epochs %E%",
    ],
)
def test_several_commands_of_a_line_are_told_apart(line: str) -> None:
    found = values(reading({"t.bat": line, "train.py": "import sys\n"}, "t.bat"))
    assert found == {"learning_rate": 1e-4, "epochs": 2}


def test_of_two_branches_in_a_line_neither_is_known() -> None:
    text = 'if "%1"=="fast" (set LR=1e-3) else (set LR=1e-5)\npython train.py --lr %LR% --epochs 2\n'
    assert values(reading({"t.bat": text, "train.py": "import sys\n"}, "t.bat")) == {"epochs": 2}


GROWING = """set CMD=python train.py
if defined LOCAL (
  set CMD=!CMD! --local_dir "%LOCAL%"
) else (
  set CMD=!CMD! --model_name_or_path acme/base-8b
)
set CMD=!CMD! --learning_rate 1e-4 --gradient_checkpointing %*
echo !CMD!
%CMD%
"""


def test_a_command_may_be_put_together_and_take_all_arguments() -> None:
    found = reading({"t.bat": GROWING, "train.py": "import sys\n"}, "t.bat --num_train_epochs 2")
    assert values(found) == {
        "base_model": "acme/base-8b", "learning_rate": 1e-4, "gradient_checkpointing": True, "epochs": 2,
    }  # fmt: skip
    assert found.values["learning_rate"].evidence[0] == Location("t.bat", 7)
    assert found.values["epochs"].evidence[0] == Location("command", 1)
    alone = reading({"t.bat": GROWING, "train.py": "import sys\n"})
    assert values(alone)["gradient_checkpointing"] is True


def test_a_shell_script_may_do_so_too() -> None:
    text = 'CMD="python train.py"\nCMD="$CMD --lr 1e-4"\nCMD="${CMD} \\\n --seed 3"\n$CMD "$@"\n'
    found = reading({"t.sh": text, "train.py": "import sys\n"}, "bash t.sh --epochs 2")
    assert values(found) == {"learning_rate": 1e-4, "seed": 3, "epochs": 2}


HOSTILE = {
    "growing": "set A=%A% --lr 1\n" * 10_000,
    "continued": "^\n" * 9_000,
    "per cent": "%" * 100_000,
    "itself": "set A=" + "%A%" * 30_000,
    "if": "if " * 40_000,
    "brackets": '("' * 50_000,
    "texts": "set A=^\n" * 5_000,
    "loops": "for %%i in (" * 10_000,
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_batch_files_cost_little(kind: str) -> None:
    text = HOSTILE[kind]
    with hostile.bounded(seconds=3):
        as_shell(text)
        reading({"t.bat": text}, "t.bat")
