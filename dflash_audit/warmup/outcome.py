"""Words for what a warm-up showed. Imports no torch."""

from dflash_audit.warmup.result import WarmUp


def outputs(warmup: WarmUp) -> str:
    """The outputs that non-finite numbers reached, as a person lists them."""
    *others, last = warmup.reached
    return f"{', '.join(others)} and {last}" if others else last
