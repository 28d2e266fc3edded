"""Causes of failures: whose they are, in a sentence, and what helps."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Blame(StrEnum):
    """Where a cause lies. The values are those of a job's class of failure."""

    USER = "user"
    RESOURCE = "resource"
    SYSTEM = "system"
    UNKNOWN = ""


@dataclass(frozen=True, slots=True)
class FailureCause:
    """A cause of failure. `sentence` may name what the rule found: `{0}`."""

    name: str
    blame: Blame
    sentence: str
    remedy: str


_U, _R, _S = Blame.USER, Blame.RESOURCE, Blame.SYSTEM

_CAUSES = (
    FailureCause(
        "gpu-memory",
        _R,
        "The training needed more memory than its GPU has.",
        "Use a smaller batch per GPU, gradient checkpointing, shorter samples, or a GPU with more memory.",
    ),
    FailureCause(
        "host-memory",
        _R,
        "The training needed more main memory than its node gives it.",
        "Use a node with more main memory, or a smaller model.",
    ),
    FailureCause(
        "gpu-fault",
        _S,
        "A GPU of the node is faulty or does not answer.",
        "Submit the job again; an administrator takes the node out of use and resets or replaces the GPU.",
    ),
    FailureCause(
        "gpu-driver",
        _S,
        "The node's driver, CUDA libraries and PyTorch do not fit together, or show no GPU.",
        "Submit the job again for another node; an administrator repairs the node's installation.",
    ),
    FailureCause(
        "peer-lost",
        _S,
        "The processes of the training lost each other: a GPU or node did not answer in time.",
        "Submit the job again; if it happens again, an administrator looks at the network of these nodes.",
    ),
    FailureCause(
        "disk-full",
        _S,
        "The node's disk is full or cannot be written to.",
        "Submit the job again for another node; an administrator makes room on this one.",
    ),
    FailureCause(
        "shared-memory",
        _S,
        "The node's shared memory is too small for the processes of a training.",
        "An administrator gives the node's container more shared memory, for example --shm-size=8g.",
    ),
    FailureCause(
        "hub-unreachable",
        _S,
        "The model hub could not be reached from the node.",
        "Submit the job again later, or have the model put on the node beforehand.",
    ),
    FailureCause(
        "gated-model",
        _U,
        "The model is gated or private, and the node may not read it.",
        "Accept its licence on the hub and have an administrator give the node a token, or choose another"
        " base model.",
    ),
    FailureCause(
        "missing-model",
        _U,
        "The base model was not found, or its files are incomplete.",
        "Check the name of the base model, or have its files put on the node.",
    ),
    FailureCause(
        "unsuitable-model",
        _U,
        "The base model cannot be trained in the chosen way.",
        "Choose another base model or another tuning.",
    ),
    FailureCause(
        "bad-data",
        _U,
        "The training data cannot be used{0}.",
        "Correct the file and choose the new one.",
    ),
    FailureCause(
        "nothing-to-learn",
        _U,
        "The samples are cut before anything that can be learnt.",
        "Raise tokens_per_sample or shorten the prompts.",
    ),
    FailureCause(
        "loss-not-finite",
        _U,
        "The loss became infinite or not a number.",
        "Lower the learning rate, or train in bfloat16 or float32.",
    ),
    FailureCause(
        "token-range",
        _U,
        "A token or label lies outside of what the model knows.",
        "Use the tokenizer that belongs to the base model, and check labels and special tokens.",
    ),
    FailureCause(
        "no-bfloat16",
        _R,
        "The GPU has no bfloat16.",
        "Choose the precision float16, or a newer GPU.",
    ),
    FailureCause(
        "old-gpu",
        _R,
        "The GPU is too old for what the training uses.",
        "Choose a newer GPU, or turn off what this one lacks, such as flash attention or tf32.",
    ),
    FailureCause(
        "bad-arguments",
        _U,
        "The training was started with arguments that it does not take.",
        "Correct the argument that the line names.",
    ),
    FailureCause(
        "unfit-settings",
        _U,
        "Settings of the job do not go together, or not with its model or GPUs.",
        "The line says what to choose instead; change that setting and submit the job again.",
    ),
    FailureCause(
        "unshown-data",
        _U,
        "The model's chat template leaves out a part of the data.",
        "Choose a model whose template shows it, or change the data as the line says.",
    ),
    FailureCause(
        "version-mismatch",
        _S,
        "The portal and the node's agent do not understand each other.",
        "Submit the job again for another node; an administrator brings the agent to the portal's version.",
    ),
    FailureCause(
        "gpu-taken",
        _S,
        "Another program uses the node's GPU.",
        "Submit the job again for another node; an administrator ends what uses the GPU (nvidia-smi).",
    ),
    FailureCause(
        "node-trouble",
        _S,
        "The node could not take the training up or go on with it.",
        "Submit the job again for another node; an administrator corrects what the line names.",
    ),
    FailureCause(
        "portal-away",
        _S,
        "The node and the portal did not reach each other.",
        "Submit the job again; if it happens again, an administrator looks at the network between them.",
    ),
    FailureCause(
        "lost-file",
        _S,
        "The portal has lost a file that the training needs.",
        "Upload the file again and submit the job with it; an administrator looks at the portal's disk.",
    ),
    FailureCause(
        "output-lost",
        _S,
        "The training ended well, but its result could not be kept.",
        "Submit the job again; an administrator looks at the node's disk.",
    ),
    FailureCause(
        "stopped",
        _U,
        "The training was stopped on request.",
        "Submit the job again; it goes on from its last checkpoint if that is stored.",
    ),
    FailureCause(
        "missing-package",
        _S,
        "A package that the training needs is missing or too old on the node{0}.",
        "An administrator installs it on the node.",
    ),
    FailureCause(
        "checkpoint",
        _U,
        "The checkpoint cannot be resumed.",
        "Start the training anew; a changed job begins without the old checkpoint.",
    ),
    FailureCause(
        "permission",
        _S,
        "The training may not read or write a file of the node.",
        "An administrator corrects the rights of the node's folders.",
    ),
    FailureCause(
        "assertion",
        _U,
        "An assertion in the training's code failed.",
        "The line says which one; correct the value that it checks.",
    ),
    FailureCause(
        "code-error",
        _U,
        "The training's code raised {0}.",
        "The line says what is wrong; correct the values or the data that it names.",
    ),
    FailureCause(
        "silent",
        _S,
        "The training gave no sign of life for too long.",
        "Submit the job again; if it happens again, look at the last lines of its log.",
    ),
    FailureCause(
        "time-limit",
        _R,
        "The job had run for as long as it may.",
        "Submit it again with a longer time limit, fewer steps, or on more or faster GPUs.",
    ),
    FailureCause(
        "killed",
        _S,
        "Something outside of the portal ended the training's process.",
        "Submit the job again; the node's kernel log tells whether main memory ran out.",
    ),
    FailureCause(
        "node-lost",
        _S,
        "The node went away while the training ran.",
        "Submit the job again; it goes on from its last checkpoint if that is stored.",
    ),
    FailureCause(
        "crash",
        _S,
        "The training's process crashed outside of Python.",
        "Submit the job again; if it happens again, an administrator looks at the node's libraries.",
    ),
    FailureCause(
        "unknown",
        Blame.UNKNOWN,
        "No known cause stands in the log.",
        "The last lines of the log may tell more.",
    ),
)
CAUSES = {cause.name: cause for cause in _CAUSES}
