"""Logs of failures, and the causes that a person names.

The forms of the messages are those of public threads about these libraries and of this trainer's own ends.
"""

from __future__ import annotations

STEPS = "step 1/50  loss 2.1000  900 tokens/s\nstep 2/50  loss 2.0500  910 tokens/s\n"
TRACE = 'Traceback (most recent call last):\n  File "train.py", line 88, in <module>\n    main()\n'


def raised(error: str, *, before: str = STEPS, after: str = "") -> str:
    return f"{before}{TRACE}{error}\n{after}"


ELASTIC = (
    "E1206 18:44:20.1 torch/distributed/elastic/agent.py:869] failed (exitcode: 1) local_rank: 3\n"
    + TRACE
    + "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"
    "============================================================\ntrain.py FAILED\n"
)
WATCHDOG = (
    "[rank0]:[E1206 18:44:12.7 ProcessGroupNCCL.cpp:607] [Rank 0] Watchdog caught collective operation"
    " timeout: WorkNCCL(SeqNum=77, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600061 milliseconds before"
    " timing out.\n"
)

CASES: dict[str, tuple[str, str]] = {
    "torch 2": (
        "gpu-memory",
        raised(
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB. GPU 0 has a total"
            " capacity of 23.65 GiB of which 1.02 GiB is free."
        ),
    ),
    "torch 1, one of several ranks, the others notice": (
        "gpu-memory",
        raised(
            "[rank3]: torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 96.00 MiB (GPU 3)"
        )
        + WATCHDOG
        + ELASTIC,
    ),
    "cublas": (
        "gpu-memory",
        raised("RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
    ),
    "weights do not fit": (
        "gpu-memory",
        raised(
            "ValueError: Some modules are dispatched on the CPU or the disk. Have you enough GPU RAM"
            " to fit the quantized model.",
            before="",
        ),
    ),
    "data loader": (
        "host-memory",
        raised("RuntimeError: DataLoader worker (pid 12847) is killed by signal: Killed."),
    ),
    "cpu allocator": (
        "host-memory",
        raised(
            "RuntimeError: [enforce fail] DefaultCPUAllocator: can't allocate memory: you tried 8589934592"
        ),
    ),
    "kernel": (
        "host-memory",
        STEPS + "slurmstepd: error: Detected 1 oom_kill event in StepId=1.batch. oom-kill: task killed.\n",
    ),
    "ecc": (
        "gpu-fault",
        raised(
            "RuntimeError: CUDA error: uncorrectable ECC error encountered\nCUDA kernel errors might be"
            " asynchronously reported at some other API call."
        ),
    ),
    "old driver": (
        "gpu-driver",
        raised("RuntimeError: The NVIDIA driver on your system is too old (found version 11040).", before=""),
    ),
    "bitsandbytes": (
        "gpu-driver",
        raised(
            "RuntimeError: \n        CUDA Setup failed despite GPU being available. Please run the following"
            " command to get more information:\n\n        python -m bitsandbytes",
            before="",
        ),
    ),
    "other architecture": (
        "gpu-driver",
        raised("RuntimeError: CUDA error: no kernel image is available for execution on the device"),
    ),
    "watchdog": ("peer-lost", STEPS + WATCHDOG + ELASTIC),
    "peer closed": (
        "peer-lost",
        raised("torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1970, remote error"),
    ),
    "gloo": (
        "peer-lost",
        raised(
            "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:598] Connection closed by peer"
        ),
    ),
    "disk": ("disk-full", raised("OSError: [Errno 28] No space left on device: '/out/checkpoint-40'")),
    "disk, torch.save": (
        "disk-full",
        raised("RuntimeError: [enforce fail at inline_container.cc:595] . unexpected pos 512 vs 406"),
    ),
    "gated": (
        "gated-model",
        TRACE
        + "requests.exceptions.HTTPError: 401 Client Error: Unauthorized for url: https://huggingface.co/x/y\n\n"
        + "The above exception was the direct cause of the following exception:\n\n"
        + raised(
            "OSError: You are trying to access a gated repo.\nMake sure to have access to it.", before=""
        ),
    ),
    "no such model": (
        "missing-model",
        raised(
            "OSError: acme/x is not a local folder and is not a valid model identifier listed on the hub\n"
            "If this is a private repository, make sure to pass a token having permission to this repo",
            before="",
        ),
    ),
    "hub away": (
        "hub-unreachable",
        raised("OSError: We couldn't connect to 'https://huggingface.co' to load this file", before=""),
    ),
    "name resolution": (
        "hub-unreachable",
        raised(
            "requests.exceptions.ConnectionError: HTTPSConnectionPool(host='huggingface.co'): Max retries"
            " exceeded with url: /api/models (Caused by NameResolutionError)",
            before="",
        ),
    ),
    "peft": (
        "unsuitable-model",
        raised(
            "ValueError: Target modules {'q_proj'} not found in the base model. Please check them.", before=""
        ),
    ),
    "vocabulary": (
        "token-range",
        STEPS + "../aten/src/ATen/native/cuda/Indexing.cu:1146: indexSelectLargeIndex: block: [7,0,0]"
        " Assertion `srcIndex < srcSelectDimSize` failed.\n"
        + raised("RuntimeError: CUDA error: device-side assert triggered", before=""),
    ),
    "vocabulary, on the CPU": ("token-range", raised("IndexError: index out of range in self")),
    "loss scale": (
        "loss-not-finite",
        raised(
            "Exception: Current loss scale already at minimum - cannot decrease scale anymore. Exiting run."
        ),
    ),
    "probabilities": (
        "loss-not-finite",
        raised("RuntimeError: probability tensor contains either `inf`, `nan` or element < 0"),
    ),
    "arrow": (
        "bad-data",
        raised(
            "pyarrow.lib.ArrowInvalid: JSON parse error: Column(/text) changed from object to array in row"
            " 17\n\nThe above exception was the direct cause of the following exception:\n\n"
            + TRACE
            + "datasets.exceptions.DatasetGenerationError: An error occurred while generating the dataset",
            before="",
        ),
    ),
    "json": (
        "bad-data",
        raised("json.decoder.JSONDecodeError: Expecting ',' delimiter: line 4 column 9 (char 80)"),
    ),
    "ragged": (
        "bad-data",
        raised("ValueError: Unable to create tensor, you should probably activate truncation and/or padding"),
    ),
    "package": ("missing-package", raised("ModuleNotFoundError: No module named 'flash_attn'", before="")),
    "checkpoint": (
        "checkpoint",
        raised(
            "RuntimeError: Error(s) in loading state_dict for Llama:\n\tsize mismatch for embed: copying",
            before="",
        ),
    ),
    "rights": (
        "permission",
        raised("PermissionError: [Errno 13] Permission denied: '/models/cache'", before=""),
    ),
    "assertion": ("assertion", raised("AssertionError: labels and logits differ in length")),
    "own code": ("code-error", raised("KeyError: 'prompt_column'") + WATCHDOG + ELASTIC),
    "segmentation fault": ("crash", STEPS + "Segmentation fault (core dumped)\n"),
    "only the launcher saw the end": (
        "crash",
        "E1119 08:26:02.7 28705 site-packages/torch/distributed/elastic/multiprocessing/api.py:882] failed"
        " (exitcode: -11) local_rank: 0 (pid: 28773)\n" + TRACE + "torch.errors.ChildFailedError: \n=====\n",
    ),
    "the launcher of a subprocess": (
        "crash",
        TRACE + "subprocess.CalledProcessError: Command '['python']' died with <Signals.SIGSEGV: 11>.\n",
    ),
    "NCCL's own words": (
        "peer-lost",
        "n122:12251:12400 [5] misc/socket.cc:483 NCCL WARN socketStartConnect: Connect failed : aborted\n",
    ),
    "serialising": (
        "disk-full",
        raised("safetensors_rust.SafetensorError: Error while serializing: No space left (os error 28)"),
    ),
    "no gradient": (
        "code-error",
        raised("RuntimeError: element 0 of tensors does not require grad and does not have a grad_fn"),
    ),
    "killed": ("killed", STEPS + "Killed\n"),
    "after a bar in the same line": (
        "peer-lost",
        "[1763]   1%|   | 24/1752 [01:08<1:19:26,  2.88s/it][rank5]:[E602 11:17:52 ProcessGroupNCCL.cpp:632]"
        " [Rank 5] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1)\n",
    ),
    "what the prefix says": (
        "peer-lost",
        "[rank4]:[E321 02:07:12.5 ProcessGroupNCCL.cpp:1709] [PG 1 Rank 4] Timeout at NCCL work: 1580\n",
    ),
    "a log's level": (
        "missing-model",
        "2026-01-04 17:18:06,410 - ERROR - Cannot go on: Can't load tokenizer for 'acme/x'.\n",
    ),
    "arguments": ("bad-arguments", "usage: train.py [-h]\ntrain.py: error: argument --fp16: invalid value\n"),
    "a program's complaint": (
        "gated-model",
        "tune download: error: You want to access a gated repository.\n",
    ),
    "no such program": ("missing-package", "run.sh: line 3: deepspeed: command not found\n"),
    "headers": ("missing-package", "/x/python_headers.h:12:10: fatal error: Python.h: No such file\n"),
    "cuda of another version": (
        "gpu-driver",
        raised(
            "CUDAMismatchException: >- DeepSpeed Op Builder: Installed CUDA version 12.2 does not match the"
            " version torch was compiled with 11.7, unable to compile cuda/cpp extensions."
        ),
    ),
    "shared memory of a loader": (
        "shared-memory",
        raised(
            "RuntimeError: DataLoader worker (pid 37) is killed by signal: Bus error. It is possible that"
            " dataloader's workers are out of shared memory."
        ),
    ),
    "too old a gpu": ("old-gpu", raised("ValueError: --tf32 requires Ampere or a newer GPU arch")),
    "columns": (
        "bad-data",
        raised(
            "KeyError: 'text'\n\nDuring handling of the above exception, another exception occurred:\n\n"
            + TRACE
            + "ValueError: The jsonl file should have keys text and target"
        ),
    ),
    "hub, offline": (
        "hub-unreachable",
        raised(
            "huggingface_hub.errors.LocalEntryNotFoundError: An error happened while trying to locate the"
            " file on the Hub and we cannot find the requested files in the local cache."
        ),
    ),
    "slurm's limit": (
        "time-limit",
        "slurmstepd: error: *** JOB 4945 ON n1 CANCELLED AT 2026-04-20T09:09:37 DUE TO TIME LIMIT ***\n",
    ),
    "launcher's signal": ("killed", raised("torch.x.SignalException: Process 9724 got signal: 15")),
    "politeness is no lease": ("code-error", raised("RuntimeError: it does not match. Please file a report")),
    "loss, without an error": (
        "loss-not-finite",
        "iter 415: loss 3.2452, time 1446ms\niter 420: loss nan, time 1440ms\niter 425: loss nan\n",
    ),
    "gradient, without an error": (
        "loss-not-finite",
        "{'loss': 1.7, 'grad_norm': nan, 'epoch': 0.01}\n{'loss': 1.1, 'grad_norm': nan, 'epoch': 0.02}\n",
    ),
    "handled out of memory, later another end": (
        "code-error",
        raised("torch.OutOfMemoryError: CUDA out of memory.", before="")
        + "".join(f"step {n}/50  loss 2.0000  900 tokens/s\n" for n in range(1, 40))
        + raised("TypeError: unsupported operand", before=""),
    ),
}
