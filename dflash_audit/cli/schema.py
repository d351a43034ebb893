"""The command `schema`: the JSON Schema of the report."""

from dflash_audit.cli.terminal import write_out


def command() -> None:
    """Print the JSON Schema of the report that --json prints."""
    from dflash_audit.formats.json_report import schema

    write_out(schema())
