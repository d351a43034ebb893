"""Random drafts against the real engine: the parts of `random_parity.py`."""
