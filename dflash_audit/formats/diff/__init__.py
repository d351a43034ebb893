"""Two checkpoints held against each other, as it is written."""
