"""What keys and commands of other trainers ask for: named where this portal's trainer cannot do it."""

from __future__ import annotations

import pytest

from knowledge.reading.reader import read
from knowledge.reading.stored_form import from_stored, to_stored
from knowledge.reading.tool_tables import tool_tables
from knowledge.reading.types import Reading, Tree

PLAIN = "learning_rate: 1e-5\nnum_train_epochs: 1\n"
# The command, its configuration (or a script), and what must be named.
ASKED = {
    "axolotl, preference": ("axolotl train c.yml", "rl: dpo\nnum_epochs: 1\n", {"dpo"}),
    "axolotl, another one": ("axolotl train c.yml", "rl: kto\n", {"kto"}),
    "axolotl, by module": (
        "accelerate launch -m axolotl.cli.train c.yml", "reward_model: true\n", {"reward"}
    ),
    "axolotl, process reward": ("axolotl train c.yml", "process_reward_model: true\n", {"process reward"}),
    "axolotl, parts": (
        "axolotl train c.yml",
        'train_on_inputs: true\nlora_modules_to_save: [lm_head]\ntokens: ["<SKU>"]\npeft_use_rslora: true\n',
        {"loss on prompts", "saved modules", "new tokens", "rsLoRA"},
    ),
    "axolotl, more": (
        "axolotl train c.yml",
        "pretraining_dataset:\n  - path: c4\nsample_packing: true\nneftune_noise_alpha: 5\n"
        "unfrozen_parameters: [lm_head]\nqat:\n  weight_dtype: int4\nroles_to_train: [assistant, user]\n",
        {"pretraining", "packing", "noise in embeddings", "frozen layers", "qat", "loss on some turns"},
    ),
    "axolotl, classification": ("axolotl train c.yml", "num_labels: 3\n", {"classification"}),
    "LLaMA-Factory, stage": ("llamafactory-cli train c.yml", f"stage: rm\n{PLAIN}", {"reward"}),
    "LLaMA-Factory, pretraining": ("llamafactory-cli train c.yml", f"stage: pt\n{PLAIN}", {"pretraining"}),
    "LLaMA-Factory, parts": (
        "llamafactory-cli train c.yml",
        "stage: sft\nuse_dora: true\nadditional_target: embed_tokens,lm_head\ntrain_on_prompt: true\n"
        "mask_history: true\nadd_tokens: <a>\npissa_init: true\nuse_galore: true\n",
        {
            "DoRA", "saved modules", "loss on prompts", "loss on the last turn alone", "new tokens",
            "another start of the adapter", "another optimiser",
        },
    ),
    "LLaMA-Factory, tuning": ("llamafactory-cli train c.yml", "finetuning_type: oft\nstage: sft\n", {"oft"}),
    "LLaMA-Factory, options": (
        "llamafactory-cli train --stage dpo --use_rslora True --learning_rate 1e-5", "", {"dpo", "rsLoRA"}
    ),
    "TRL, command": ("trl dpo --config c.yml", PLAIN, {"dpo"}),
    "TRL, parts": (
        "trl sft --config c.yml --packing --use_dora",
        "completion_only_loss: false\nlora_modules_to_save: [lm_head]\n",
        {"packing", "DoRA", "loss on prompts", "saved modules"},
    ),
    "AutoTrain, task": ("autotrain --config c.yml", "task: llm-orpo\n", {"orpo"}),
    "AutoTrain, trainer": ("autotrain llm --train --trainer reward --model a/b", "", {"reward"}),
    "AutoTrain, no text": ("autotrain --config c.yml", "task: image_classification\n", {"vision"}),
    "AutoTrain, pairs": ("autotrain --config c.yml", "task: sentence-transformers:pair\n", {"embedding"}),
    "H2O, problem": (
        "python train.py -Y c.yml",
        "problem_type: text_causal_classification_modeling\ntraining:\n    use_rslora: true\n",
        {"classification", "rsLoRA"},
    ),
    "H2O, off": (
        "python train.py -Y c.yml",
        "llm_backbone: a/b\ndataset:\n    mask_prompt_labels: false\ntraining:\n    freeze_layers: [embed]\n",
        {"loss on prompts", "frozen layers"},
    ),
    "torchtune, recipe": (
        "tune run knowledge_distillation_distributed --config qwen2/a batch_size=2", "", {"distillation"}
    ),
    "torchtune, parts": (
        "tune run lora_finetune_single_device --config c.yml dataset.train_on_input=True",
        "dataset:\n  packed: true\nmodel:\n  use_dora: true\n",
        {"loss on prompts", "packing", "DoRA"},
    ),
    "litgpt, command": ("litgpt pretrain acme/a-1b --train.max_tokens 1000", "", {"pretraining"}),
    "litgpt, prompts": (
        "litgpt finetune_lora a/b --data JSON --data.mask_prompt false", "", {"loss on prompts"}
    ),
    "swift, command": ("swift pt --model a/b --learning_rate 1e-5", "", {"pretraining"}),
    "swift, kind": ("swift rlhf --rlhf_type gkd --teacher_model c/d --model a/b", "", {"distillation"}),
    "swift, parts": (
        "swift sft --model a/b --modules_to_save embed_tokens --new_special_tokens x --loss_scale last_round",
        "",
        {"saved modules", "new tokens", "loss on the last turn alone"},
    ),
    "swift, task": ("swift sft --model a/b --task_type seq_cls --num_labels 2", "", {"classification"}),
    "a tool that is not known": (
        "python src/train.py --use_dora True --lora_modules_to_save lm_head --learning_rate 1e-4 c.yml",
        "train_on_inputs: true\nmine: 1\n",
        {"DoRA", "saved modules", "loss on prompts"},
    ),
    "no command, by its keys": (
        None,
        "base_model: a/b\nmicro_batch_size: 1\nsequence_len: 512\nnum_epochs: 1\nwandb_project: x\nrl: ipo\n"
        "val_set_size: 0.1\ndataset_prepared_path: x\nflash_attention: true\noutput_dir: o\n",
        {"ipo"},
    ),
}  # fmt: skip
SCRIPT = """
from trl import SFTConfig, SFTTrainer
from peft import LoraConfig
tokenizer.add_tokens(["<a>"])
adapter = LoraConfig(r=8, use_dora=True, modules_to_save=["lm_head"], lora_dropout=0.0, bias="none")
args = SFTConfig(packing=True, completion_only_loss=False, neftune_noise_alpha=5)
SFTTrainer(m, args=args, peft_config=adapter)
"""


@pytest.mark.parametrize("case", ASKED)
def test_what_is_asked_for_and_cannot_be_done_is_named(case: str) -> None:
    command, text, names = ASKED[case]
    found = read(Tree({"c.yml": text} if text else {}, command))
    assert names <= set(found.unsupported)


def test_settings_in_a_script_are_named_too() -> None:
    found = set(read(Tree({"t.py": SCRIPT}, "python t.py")).unsupported)
    assert found == {
        "packing",
        "loss on prompts",
        "noise in embeddings",
        "DoRA",
        "saved modules",
        "new tokens",
    }


IN_OTHER_WORDS = {
    "from trl import KTOTrainer as K\nK(model='a/b').train()\n": {"kto"},
    "from trl import DPOTrainer\nclass T(DPOTrainer):\n    pass\nT(model='a/b').train()\n": {"dpo"},
    "from transformers import AutoModelForSequenceClassification as M\nM.from_pretrained('a/b')\n": {
        "classification"
    },
    "import transformers\ntransformers.T5ForConditionalGeneration.from_pretrained('t5')\n": {"seq2seq"},
    "from peft import LoraConfig as L\nL(r=8, use_dora=True)\n": {"DoRA"},
    "from peft import LoraConfig\nkw = dict(r=8, use_dora=True)\nLoraConfig(**kw)\n": {"DoRA"},
    "from peft import LoraConfig\nkw = {'use_rslora': True}\nLoraConfig(r=8, **kw)\n": {"rsLoRA"},
    "tok.add_tokens(['<x>'])\n": {"new tokens"},
    "tok.add_special_tokens({'additional_special_tokens': ['<x>']})\n": {"new tokens"},
    "tok.add_special_tokens({'pad_token': '<x>'})\nmodel.resize_token_embeddings(9)\n": set(),
    "from sentence_transformers import SentenceTransformerTrainer as S\nS(model=m).train()\n": {"embedding"},
    "from trl import DPOTrainer, SFTTrainer\nclass T(SFTTrainer):\n    pass\nT(model='a/b').train()\n": set(),
    "class A(A_Trainer):\n    pass\nclass A_Trainer(A):\n    pass\nA()\n": set(),
}


@pytest.mark.parametrize("script", IN_OTHER_WORDS)
def test_a_script_may_import_under_other_names_inherit_and_spread(script: str) -> None:
    assert set(read(Tree({"t.py": script}, "python t.py")).unsupported) == IN_OTHER_WORDS[script]


PLAIN_TREES = {
    "axolotl train c.yml": (
        "base_model: a/b\nadapter: lora\nlora_r: 8\nlora_dropout: 0.0\ntrain_on_inputs: false\nrl:\n"
        "weight_decay: 0\nadam_beta2: 0.999\ntokens: []\nchat_template: tokenizer_default\n"
        "roles_to_train: [assistant]\ndatasets:\n  - path: x.jsonl\n    type: chat_template\n"
        "wandb_project: p\nval_set_size: 0.1\n"
    ),
    "llamafactory-cli train c.yml": (
        "stage: sft\nfinetuning_type: lora\nuse_dora: false\ntemplate: qwen\noutput_dir: o\n"
    ),
    "trl sft --config c.yml": "packing: false\nassistant_only_loss: true\nloss_type: nll\nreport_to: none\n",
    "autotrain --config c.yml": "task: llm-sft\nbase_model: a/b\nparams:\n  trainer: sft\n  peft: true\n",
    "python train.py -Y c.yml": (
        "problem_type: text_causal_language_modeling\ndataset:\n  mask_prompt_labels: true\n"
    ),
    "tune run lora_finetune_single_device --config c.yml": (
        "dataset:\n  packed: False\n  train_on_input: false\nseed: 1\n"
    ),
    "litgpt finetune_lora --config c.yml": (
        "train:\n  epochs: 1\ndata:\n  init_args:\n    mask_prompt: true\n"
    ),
    "swift sft --config c.yml": "loss_scale: default\ntask_type: causal_lm\nuse_rslora: false\n",
}


@pytest.mark.parametrize("command", PLAIN_TREES)
def test_what_the_portal_does_as_well_is_not_named(command: str) -> None:
    found = read(Tree({"c.yml": PLAIN_TREES[command]}, command))
    assert (found.unsupported, found.unknown_keys) == ((), ())


def test_a_key_in_no_table_is_named_as_unknown() -> None:
    text = (
        "base_model: a/b\nlearning_rte: 1e-5\ndatasets:\n  - path: x\n    tpye: y\nfsdp_config:\n  any: 1\n"
    )
    found = read(Tree({"c.yml": text}, "axolotl train c.yml --debg"))
    assert set(found.unknown_keys) == {"learning_rte", "datasets.tpye", "debg"}
    assert from_stored(to_stored(found)) == found


def test_a_word_that_several_tools_have_alike_counts_where_the_tool_is_not_known() -> None:
    command = "accelerate launch scripts/sft.py --config c.yml"
    found = read(Tree({"c.yml": "model_name_or_path: a/b\npacking: true\nresume: true\n"}, command))
    assert found.unsupported == ("packing",)


def test_keys_of_a_script_of_ones_own_are_not_called_unknown() -> None:
    files = {"t.py": "import argparse\n", "c.yml": "mine: 1\nlearning_rate: 1e-4\n"}
    assert read(Tree(files, "python t.py --config c.yml --other 2")).unknown_keys == ()


def test_hostile_keys_cost_little_and_can_be_kept() -> None:
    text = "".join(f'k{at}: "{at}\\0"\n' for at in range(3_900))
    found: Reading = read(Tree({"c.yml": text + 'rl: "a\\0b"\n'}, "axolotl train c.yml"))
    assert len(found.unknown_keys) == 100
    assert not any("\0" in name for name in (*found.unknown_keys, *found.unsupported))


@pytest.mark.parametrize("name", tool_tables())
def test_a_key_stands_once_in_its_table(name: str) -> None:
    table = tool_tables()[name]
    assert table.version
    assert not table.harmless & (set(table.on) | set(table.off))
    assert not set(table.on) & set(table.by_value)
    assert all(key == key.lower() for key in (*table.on, *table.off, *table.by_value, *table.harmless))


@pytest.mark.parametrize(
    ("command", "text", "expected"),
    [
        (
            "python train.py -Y c.yml",
            "llm_backbone: a/b\narchitecture:\n  backbone_dtype: int4\ntraining:\n  lora: true\n"
            "environment:\n  gpus:\n  - '0'\n  - '1'\n",
            {"tuning": "qlora", "quantization": "bnb-4bit", "number_gpus": 2, "base_model": "a/b"},
        ),
        ("litgpt finetune_lora meta/L-1B --data JSON", "", {"base_model": "meta/L-1B", "tuning": "lora"}),
        ("litgpt finetune_full meta/L-1B --train.epochs 3", "", {"base_model": "meta/L-1B", "epochs": 3}),
    ],
)
def test_values_that_stand_in_a_tools_own_way(command: str, text: str, expected: dict[str, object]) -> None:
    found = read(Tree({"c.yml": text} if text else {}, command)).values
    assert {name: found[name].value for name in expected} == expected
