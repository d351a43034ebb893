"""The command `explain`: the page of a rule."""

from dflash_audit.cli.options import named
from dflash_audit.cli.terminal import write_out
from dflash_audit.rules import page


def command(rule: named.Rule) -> None:
    """Explain a rule: what it finds, why it matters, an example, how to fix it."""
    write_out(page(rule))
