"""Reasons that this portal's own trainer and agent give, as they begin a line.

They have no form of an error. A test reads all reasons from the code of both and demands a cause for each.
"""

from __future__ import annotations

import re

from knowledge.reading.failures.rules import compiled

OWN_REASONS = compiled(
    (
        # The order does not fit the software that got it.
        ("version-mismatch", r"^\S+/spec\.json cannot be used|^This trainer knows the recipe"),
        ("version-mismatch", r"^spec\.gpus (?:must name|names) |^the node does not understand the order"),
        # Settings that do not go together, or not with the model.
        ("unfit-settings", r"^The tuning qlora needs a GPU|^fsdp goes with "),
        (
            "unfit-settings",
            r"^The parameter \w+ .{1,300}, not |^effective_batch_size is .{1,80}, but per_device",
        ),
        ("unfit-settings", r"^\S+ has [\d,]+ positions: choose at most"),
        ("unfit-settings", r"^\S+ \(\S+\) has no gradient checkpointing: choose"),
        ("unfit-settings", r"^\S+ has no attention to adapt; choose"),
        ("unfit-settings", r"^The layers of \S+ cannot be stored in 4 bits|^LoRA does not fit "),
        ("unfit-settings", r"^The files of \S+ hold quantised weights"),
        ("unfit-settings", r"^\S+ .{1,300}; choose the tuning \w+\b"),
        ("missing-package", r"^The tuning \w+ needs the package (\w+)"),
        ("missing-package", r"^The recipe \w+ needs (\w+).{0,100}, which this node's environment lacks"),
        # The model and its template.
        ("missing-model", r"^The files of \S+ lack weights of the model|^The portal knows no sizes of "),
        ("missing-model", r"^\S{1,300} is no model: give builtin/NAME"),
        ("unsuitable-model", r"^\S+ is an? \w+; only models that continue text"),
        ("unsuitable-model", r"^In \S+ a token sees those after it|^The model \S+ does not read plain text"),
        ("unsuitable-model", r"^The model(?:'s chat template cannot be read| has (?:no|neither) )"),
        ("unsuitable-model", r"^The model's chat template writes no end"),
        ("token-range", r"^The tokenizer of \S+ has more tokens than the model"),
        ("unshown-data", r"^The model's chat template does not show it "),
        ("bad-data", r"^\S+ cannot be used: .{0,300}?\b((?:line|row) [\d,]+)"),
        ("bad-data", r"^((?-i:Row) \d+): "),
        ("bad-data", r"^\S+ cannot be used: |^inputs/\S+ is missing in the run directory"),
        # The checkpoint.
        ("checkpoint", r"^The checkpoint(?:'s| is of| cannot be (?:loaded|resumed)) "),
        ("checkpoint", r"^the checkpoint of step \d+ is not on this node any more"),
        # The node, its disk and its GPUs.
        ("disk-full", r"^disk full: |^the node cannot write its records|^[Tt]he node's disk is full"),
        ("gpu-driver", r"^torch finds no usable CUDA GPU|^The driver shows the training no GPU"),
        ("gpu-driver", r"^The node's (?:NVIDIA driver is older|GPUs are not ready|torch build has no code)"),
        ("gpu-fault", r"^(?:A GPU of this node (?:is faulty|has uncorrectable|does not answer)|An NVLink )"),
        ("gpu-taken", r"^[\d.]+ GiB of GPU .{1,120} are in use|^A GPU is held by another program"),
        ("gpu-taken", r"^the training of claim \S+ has not left its GPUs"),
        ("shared-memory", r"^The node's shared memory is too small"),
        ("node-trouble", r"^no port from \d+ to \d+ is free|^the address of this node is not known"),
        ("node-trouble", r"^the training could not be started: |^the node could not go on: "),
        # The portal's files, and the way to them.
        ("lost-file", r"^the portal has lost "),
        ("portal-away", r"^input \S+ could not be fetched|^the node heard nothing from the portal"),
        ("output-lost", r"^the training succeeded, but its outputs could not be kept"),
        # Other nodes.
        (
            "peer-lost",
            r"^the node of rank 0 did not say|^(?:The other nodes of|The connection to the other) ",
        ),
        ("peer-lost", r"^They met at .{1,300}, but |^.{1,120} waited [\d.]+ s in vain for "),
        # Ends that were asked for, or came from outside.
        ("killed", r"^the training was (?:stopped by something other|ended by .{1,40}, which the agent)"),
        ("node-lost", r"^the node (?:no longer has this run|agent was stopped)"),
        ("stopped", r"^stopped (?:on request|before it was started)|^cancelled before its outputs were kept"),
        ("stopped", r"^another node of this training was asked to stop|.; killed after [\d.]+ s of grace$"),
    )
)
_ANY = re.compile("|".join(rule.expression.pattern for rule in OWN_REASONS), re.IGNORECASE)


def is_own_reason(message: str) -> bool:
    return bool(_ANY.search(message))
