"""Ends as launchers tell them, and errors whose traceback tells what they mean."""

from __future__ import annotations

from tests.knowledge.reading.failures.cases import STEPS, raised


def launched(code: int, command: str = "train.py") -> str:
    return (
        "[2025-02-03 10:20:30,411] [INFO] [launch.py:319:sigkill_handler] Killing subprocess 4711\n"
        f"[2025-02-03 10:20:31,500] [ERROR] [launch.py:325:sigkill_handler] ['python', '-u', '{command}',"
        f" '--local_rank=1'] exits with return code = {code}\n"
    )


def through(file: str, function: str, error: str) -> str:
    """An error that a traceback through a file of a library tells."""
    return (
        f'{STEPS}Traceback (most recent call last):\n  File "train.py", line 8, in <module>\n    main()\n'
        f'  File "/env/site-packages/{file}", line 92, in {function}\n    value = do(row)\n            ^^^\n'
        f"{error}\n"
    )


ENDS = {
    "a return code, killed": ("killed", launched(-9)),
    "a return code, crashed": ("crash", launched(-11)),
    "a return code behind a long command": ("crash", launched(-7, "--deepspeed_config=" + "eyJ0" * 300)),
    "a shell that tells who was killed": (
        "killed",
        f"{STEPS}run.sh: line 12:  4173 Killed      python train.py\n",
    ),
    "after a bar, no new line": (
        "crash",
        "loss 4.3: 20%|##  | 11/56 [00:02<00:08,  5.02it/s]Segmentation fault\n",
    ),
    "after many bars in one long line": (
        "time-limit",
        "".join(f" {n}%|  | {n}/50 [{n}:34<8:38:27, 634.85s/it]" for n in range(10, 40))
        + "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-04-14T16:17:16 DUE TO TIME LIMIT ***\n",
    ),
    "slurm's memory": (
        "host-memory",
        "slurmstepd: error: Job 8 exceeded memory limit (10442128 > 10240000), being killed\n"
        "slurmstepd: error: *** JOB 8 ON n1 CANCELLED AT 2026-05-20T09:58:05 ***\n",
    ),
    "a worker of ray": (
        "crash",
        "(TaskRunner pid=892) ray.exceptions.ActorDiedError: The actor died unexpectedly before it ended.\n",
    ),
    "memory of ray": (
        "host-memory",
        raised("ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory."),
    ),
    "metal": (
        "gpu-memory",
        "libc++abi: terminating due to uncaught exception of type std::runtime_error: [METAL] Command buffer"
        " execution failed: Insufficient Memory (00000008)\n",
    ),
    "an error of no error's name": (
        "code-error",
        raised("torch._dynamo.exc.BackendCompilerFailed: backend='inductor' raised it"),
    ),
    "coloured": ("gpu-memory", f"{STEPS}\x1b[31mRuntimeError\x1b[0m: \x1b[1mCUDA out of memory.\x1b[0m\n"),
    "a log in a letter": (
        "peer-lost",
        ">   what():  [Rank 3] Watchdog caught collective operation timeout\n",
    ),
    "a socket of C++": (
        "peer-lost",
        "[E socket.cpp:753] [c10d] The client socket has failed to connect to any address of (h, 1).\n",
    ),
    "weights, not at their place": (
        "missing-model",
        raised("FileNotFoundError: [Errno 2] No such file or directory: 'out/phi-2/lit_model.pth'"),
    ),
    "an option's folder": ("missing-model", "--checkpoint_dir '/m/x' is not a checkpoint directory.\n"),
    "weights that cannot be written": (
        "disk-full",
        raised("safetensors_rust.SafetensorError: Error while serializing: I/O error: Invalid argument"),
    ),
    "a library without a symbol": ("gpu-driver", "/lib64/libnvidia-ml.so.1: undefined symbol: nvmlDevice\n"),
    "losses of several parts": (
        "loss-not-finite",
        "batch: 1, gd_loss: 8.1, combined_loss: nan,\nbatch: 2, gd_loss: nan, combined_loss: nan,\n",
    ),
}
PLACES = {
    "a rate that is a text": (
        "bad-arguments",
        through(
            "torch/optim/adamw.py",
            "__init__",
            "TypeError: '<=' not supported between instances of 'float' and 'str'",
        ),
    ),
    "a rate below zero": (
        "bad-arguments",
        through("torch/optim/sgd.py", "__init__", "ValueError: Invalid learning rate: -1.0"),
    ),
    "generation settings that contradict each other": (
        "unsuitable-model",
        through(
            "transformers/generation/configuration_utils.py",
            "save_pretrained",
            "ValueError: GenerationConfig is invalid: \n- `temperature`: `do_sample` is not set to `True`.",
        ),
    ),
    "generation settings, told in the way of later versions": (
        "unsuitable-model",
        through(
            "transformers/generation/configuration_utils.py",
            "save_pretrained",
            "ValueError: The generation config instance is invalid -- `.validate()` throws exceptions.",
        ),
    ),
    "a tokenizer of a later version": (
        "missing-package",
        through(
            "transformers/tokenization_utils_fast.py",
            "__init__",
            "Exception: data did not match any variant of untagged enum ModelWrapper at line 757479 column 3",
        ),
    ),
    "no device": (
        "gpu-driver",
        through(
            "unsloth_zoo/device_type.py",
            "get_device_type",
            "NotImplementedError: Unsloth cannot find any torch accelerator? You need a GPU.",
        ),
    ),
    "no room for a library's own memory": (
        "gpu-memory",
        through(
            "torch/nn/modules/linear.py",
            "forward",
            "RuntimeError: CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`",
        ),
    ),
    "rows, mapped": ("bad-data", through("datasets/arrow_dataset.py", "wrapper", "KeyError: None")),
    "rows, converted": (
        "bad-data",
        through("factory/data/aligner.py", "convert_sharegpt", "KeyError: 'from'"),
    ),
    "rows, tokenised": (
        "bad-data",
        through("trl/trainer/sft_trainer.py", "tokenize_fn", "KeyError: 'prompt'"),
    ),
    "a data set's own file": (
        "bad-data",
        through(
            "mm/datasets/coco_dataset.py", "__init__", "FileNotFoundError: [Errno 2] No such file: 'a.json'"
        ),
    ),
    "a map called wrongly": (
        "code-error",
        through(
            "datasets/arrow_dataset.py", "wrapper", "TypeError: map() got an unexpected keyword argument 'x'"
        ),
    ),
    "what a loader was given": (
        "code-error",
        through("torch/utils/data/dataloader.py", "__next__", "KeyError: 'target_mask'"),
    ),
    "arguments that do not go together": (
        "bad-arguments",
        through("swift/llm/argument/rlhf_args.py", "_check", "ValueError: a is not compatible with b"),
    ),
    "a type of model that the library does not know": (
        "unsuitable-model",
        through(
            "transformers\\models\\auto\\configuration_auto.py", "__getitem__", "KeyError: 'llava_llama'"
        ),
    ),
    "elsewhere": ("code-error", through("peft/tuners/tuners_utils.py", "inject", "KeyError: 'q'")),
}
