"""What is told of a fault of the program itself."""

import os
import sys
import traceback
from typing import Final, NoReturn

from dflash_audit.cli.terminal import complain, write_err
from dflash_audit.printable import printable

TRACEBACK: Final = "DFLASH_AUDIT_TRACEBACK"
"""The environment variable with which the traceback is printed too."""


FAILED: Final = 3
"""The exit code where nothing is known of the checkpoint. Not imported, for that may be what failed."""


def end(error: Exception) -> NoReturn:
    """End the process with one line on stderr, after the traceback if that is asked for."""
    how = f"; {TRACEBACK}=1 shows where"
    if os.environ.get(TRACEBACK):
        how = ""
        for line in "".join(traceback.format_exception(error)).splitlines():
            write_err(printable(line))
    complain([printable(f"the program itself failed ({type(error).__name__}: {error}){how}")])
    sys.exit(FAILED)
