"""The command `schema`: the JSON Schema of what the program prints."""

from dflash_audit.cli import options
from dflash_audit.cli.terminal import write_out
from dflash_audit.formats.schemas import schema_text


def command(name: options.Schema = "report") -> None:
    """Print the JSON Schema of the report that --json prints, or of another object."""
    write_out(schema_text(name))
