"""The draft is served only with a server flag that is off by default."""

from collections.abc import Iterator

from dflash_audit.engine_run import EngineRun
from dflash_audit.finding import Finding


def find(run: EngineRun) -> Iterator[Finding]:
    """One finding a flag."""
    for needed in run.flags:
        yield Finding(
            rule="server-flag",
            severity="warning",
            engine=run.engine,
            subject=needed.flag,
            message=f"{run.engine} refuses this draft without {needed.flag}: {needed.reason}.",
            hint=f"Start the server with {needed.flag}.",
        )
