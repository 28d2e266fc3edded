"""From rows to micro-batches.

The package renders rows, tokenises them once a node, and finds which parts count in the loss.
"""

from trainer.train.data.batches import IGNORED, Batch, Sample, collate, embeddings, padding
from trainer.train.data.preparation import Data, prepare

__all__ = ["IGNORED", "Batch", "Data", "Sample", "collate", "embeddings", "padding", "prepare"]
