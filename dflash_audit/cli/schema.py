"""The command `schema`: the JSON Schemas of what --json prints."""

from dflash_audit.cli.options import named
from dflash_audit.cli.terminal import write_out


def command(name: named.SchemaName = "report") -> None:
    """Print the JSON Schema of what --json prints: a report's, or that of another command."""
    from dflash_audit.formats.schemas import schema

    write_out(schema(name))
