"""From rows to micro-batches: rendering, tokenising, and what of a row counts in the loss."""

from trainer.train.data.samples import IGNORED, Batch, Sample, collate, read_samples

__all__ = ["IGNORED", "Batch", "Sample", "collate", "read_samples"]
