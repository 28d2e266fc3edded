"""Scripts that were read, and forms of log lines."""

from __future__ import annotations

from django.conf import settings
from django.db import models


class SourceTree(models.Model):
    """Files of a training script that a person had read, with the command.

    `files`: the digest of each text by path. `texts`: compressed JSON, empty when they are no longer kept.
    """

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="source_trees")
    digest = models.CharField(max_length=64)
    command = models.TextField(blank=True)
    files = models.JSONField()
    left_out = models.JSONField(default=dict)
    texts = models.BinaryField()
    size = models.PositiveIntegerField(help_text="bytes of all texts")
    read_at = models.DateTimeField(db_index=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["owner", "digest"], name="one_source_tree_a_digest")]

    def __str__(self) -> str:
        return f"source tree {self.pk}"


class ModelState(models.TextChoices):
    """How far a language model is with what the rules left open."""

    UNASKED = ""
    ASKED = "asked"
    READING = "reading"
    DONE = "done"
    FAILED = "failed"


class ScriptReading(models.Model):
    """The statements of a tree (`knowledge/reading/stored_form.py`)."""

    tree = models.OneToOneField(SourceTree, models.CASCADE, related_name="reading")
    reader_version = models.CharField(max_length=16)
    rules = models.JSONField(help_text="what the rules read")
    added = models.JSONField(default=dict, help_text="values of the language model, by field")
    wanted = models.JSONField(default=list, help_text="fields that the language model is asked for")
    model_state = models.CharField(max_length=10, choices=ModelState.choices, blank=True, db_index=True)
    model_note = models.CharField(max_length=300, blank=True)
    asked_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"reading of {self.tree}"


class LogFormat(models.Model):
    """How lines of one form count, as a language model said.

    `samples`: lines that the model is shown, none any more once it has answered. `shape`: the fields of
    `knowledge.reading.logs.formats.LogShape`; None while nothing is known.
    """

    digest = models.CharField(max_length=64, unique=True)
    shape = models.JSONField(null=True, blank=True)
    samples = models.JSONField(default=list)
    model_state = models.CharField(max_length=10, choices=ModelState.choices, db_index=True)
    model_note = models.CharField(max_length=300, blank=True)
    asked_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+"
    )
    asked_at = models.DateTimeField()
    answered_by = models.CharField(max_length=300, blank=True, help_text="host of the language model")

    def __str__(self) -> str:
        return f"log format {self.digest[:8]}"
