"""What is told of a fault of the program itself."""

import os
import sys
import traceback
from typing import Final, NoReturn

from dflash_audit.cli.terminal import complain, write_err
from dflash_audit.printable import printable
from dflash_audit.sink import sink

TRACEBACK: Final = "DFLASH_AUDIT_TRACEBACK"
"""The environment variable with which the traceback is printed too."""


FAILED: Final = 3
"""The exit code where nothing is known of the checkpoint. Not imported, for that may be what failed."""


def end(error: Exception) -> NoReturn:
    """End the process with one line on stderr, after the traceback if that is asked for."""
    if isinstance(error, OSError) and _of_help(error):
        sink(sys.stdout)
        complain([f"stdout: {error.strerror}"])
        sys.exit(FAILED)
    how = f"; {TRACEBACK}=1 shows where"
    if os.environ.get(TRACEBACK):
        how = ""
        for line in "".join(traceback.format_exception(error)).splitlines():
            write_err(printable(line))
    complain([printable(f"the program itself failed ({type(error).__name__}: {error}){how}")])
    sys.exit(FAILED)


def _of_help(error: OSError) -> bool:
    """Whether stdout did not take a help page, which typer prints by itself."""
    return traceback.extract_tb(error.__traceback__)[-1].name == "echo"
