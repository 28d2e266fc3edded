"""Lines in the forms of logs that nobody here wrote, with the cause that they tell."""

from __future__ import annotations

from tests.knowledge.reading.failures.cases import raised

FURTHER = {
    "loss, in words": ("loss-not-finite", "Loss is nan, stopping training\n"),
    "columns, of other names": (
        "bad-data",
        raised("ValueError: Column name prompt not in the dataset. Current columns in the dataset: []"),
    ),
    "columns, invalid": ("bad-data", raised("ValueError: Invalid columns found: {'sex', 'site'}")),
    "a watchdog, stuck": (
        "peer-lost",
        "[rank6]:[E217 00:13:05.6 ProcessGroupNCCL.cpp:1484] [Rank 6] the watchdog got stuck for 480 s\n",
    ),
    "a watchdog, written into a bar": (
        "peer-lost",
        " 2%|#  | 1/42 [02:52<1:48:00, 158.06s/i[rank0]:[E ProcessGroupNCCL.cpp:523] Watchdog caught it\n",
    ),
    "bitsandbytes without a library": (
        "gpu-driver",
        "CUDA SETUP: Problem: The main CUDA runtime library was not detected.\n",
    ),
    "a message that a terminal wrapped": (
        "gated-model",
        "18:57:53-195282 ERROR    Load model: 401 Client Error. (Request ID:\n"
        + " " * 25
        + "Root=1)\n"
        + " " * 25
        + "Cannot access gated repo for url\n"
        + "18:57:54-195282 INFO     Killed time.\n",
    ),
    "a worker of the data, gone": (
        "crash",
        raised("RuntimeError: DataLoader worker (pid(s) 1015, 4764) exited unexpectedly"),
    ),
    "an end that an editor tells": ("crash", "Process finished with exit code -1073741795 (0xC000001D)\n"),
    "a stack, smashed": ("crash", "*** stack smashing detected ***: /env/bin/python terminated\n"),
    "malloc's own check": (
        "crash",
        "python: malloc.c:3720: _int_malloc: Assertion `(size) >= (nb)' failed.\n",
    ),
    "the watchdog's own end": (
        "crash",
        "NCCL watchdog thread terminated: CUDA error: an illegal memory access was encountered\n",
    ),
    "an old check, written into a long bar": (
        "gpu-memory",
        "| epoch 008:  37%|###  | 418/1135 [01:38<02:48,  4.25it/s, loss=6.223, nll_loss=5.089, wps=15058]"
        "THCudaCheck FAIL file=x.cuh line=317 error=2 : out of memory\n",
    ),
    "files of data, missing": (
        "bad-data",
        raised("FileNotFoundError: [Errno 2] No such file or directory: '/home/a/audio/dev_other.tsv'"),
    ),
    "a file of no data, missing": (
        "code-error",
        raised("FileNotFoundError: [Errno 2] No such file or directory: 'exp/asr/config.yaml'"),
    ),
    "rights, without an error's name": ("permission", "[Errno 13] Permission denied: '/models/refs/main'\n"),
    "rights, in another language": ("permission", raised("OSError: [WinError 1314] Klient nie ma uprawnień")),
    "a backend, missing": (
        "missing-package",
        raised("ValueError: PEFT backend is required for this method."),
    ),
    "weights of another model": (
        "checkpoint",
        raised("RuntimeError: Error(s) in loading state_dict for GPT2LMHeadModel:"),
    ),
}
