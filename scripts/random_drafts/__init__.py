"""Random drafts: the parts of `random_cases.py`."""
