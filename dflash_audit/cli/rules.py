"""The command `rules`: every rule in a line."""

from dflash_audit.cli.terminal import write_out
from dflash_audit.rules import RULES, title


def command() -> None:
    """List the rules, a line each."""
    width = max(map(len, RULES))
    for rule in RULES:
        write_out(f"{rule:{width}}  {title(rule)}")
