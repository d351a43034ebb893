"""The hook of pre-commit: of changed files the checkpoints are audited, and the worst exit code counts."""

import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from dflash_audit.printable import printable
from dflash_audit.report import UNREADABLE

WEIGHTS: Final = re.compile(r"[^/]*\.safetensors(\.index\.json)?")
CONFIGS: Final = re.compile(r"(config|[^/]*(quant|quantize|quantization)_config)\.json")
"""What an engine reads beside the weights: `CONFIG_FILES` of quantization/resolve.py has the endings."""


def main() -> None:
    """Audit the checkpoints of the files on the command line, with the options on it, each in one word."""
    options = [word for word in sys.argv[1:] if word.startswith("-")]
    files = [word for word in sys.argv[1:] if not word.startswith("-")]
    if wrong := [*_misread(options, files)]:
        print(*wrong, sep="\n", file=sys.stderr)
        sys.exit(2)
    try:
        folders = checkpoints(files)
    except OSError as error:
        told = f"{error.filename}: {error.strerror}"
        print(f"dflash-audit: {printable(told)}", file=sys.stderr)
        sys.exit(UNREADABLE)
    sys.exit(max((_audit(folder, options) for folder in folders), default=0))


def _misread(options: Iterable[str], files: Iterable[str]) -> Iterator[str]:
    """A complaint on each word of which it is open whether the user or the repository wrote it."""
    for word in options:
        if os.path.lexists(word):
            yield f"dflash-audit: {printable(word)}: a file that is called like an option: name it otherwise"
    for word in files:
        if not os.path.lexists(word):
            yield f"dflash-audit: {printable(word)}: no file; an option is one word here, --engine=all"


def checkpoints(files: Iterable[str]) -> list[str]:
    """The folders whose weights changed, or whose config did and that have weights; of other files none.

    A config.json alone is that of any program; weights without one are for the audit to complain about.
    Raises OSError where a folder cannot be listed.
    """
    folders: set[str] = set()
    for file in files:
        folder, name = os.path.split(file)
        config = CONFIGS.fullmatch(name) and any(map(WEIGHTS.fullmatch, os.listdir(folder or ".")))
        if config or WEIGHTS.fullmatch(name):
            folders.add(folder or ".")
    return sorted(folders)


def _audit(folder: str, options: Sequence[str]) -> int:
    # -P: nothing is imported from the repository that is committed to.
    command = [sys.executable, "-P", "-m", "dflash_audit", "audit", *options, "--", folder]
    code = subprocess.run(command, check=False).returncode
    return code if code >= 0 else UNREADABLE  # killed: nothing is known of this checkpoint
