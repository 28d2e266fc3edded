"""From rows to micro-batches: rendering, tokenising once a node, and what of a row counts in the loss."""

from trainer.train.data.batches import IGNORED, Batch, Sample, collate
from trainer.train.data.preparation import Data, prepare

__all__ = ["IGNORED", "Batch", "Data", "Sample", "collate", "prepare"]
