"""The upload of a folder whose audit passed: what would be in its way, what goes up, and where it went."""

from collections.abc import Callable, Sequence
from typing import Final

from dflash_audit.byte_count import byte_count
from dflash_audit.errors import Unreadable
from dflash_audit.publishing.contents import Contents, Entry
from dflash_audit.publishing.destination import Destination
from dflash_audit.publishing.leftovers import leftovers
from dflash_audit.publishing.upload import State, look, upload
from dflash_audit.sources.checkpoint import Checkpoint

MOST_NAMED: Final = 20
"""Most paths in a line, unless that line is all that was asked for."""


def push(
    before: Contents,
    checkpoint: Checkpoint,
    destination: Destination,
    dry_run: bool,
    tell: Callable[[str], None],
) -> None:
    """Upload a folder as it was before its audit, in one commit; with `dry_run` say what would go up.

    `tell` gets a line on each step. Raises `Unreadable` for all that keeps it from arriving.
    """
    files, left = _parted(before, checkpoint)
    state = look(destination)
    _allowed(checkpoint, destination, state)
    total = byte_count(sum(each.size for each in files))
    count = f"{len(files)} file{'' if len(files) == 1 else 's'}, {total}"
    listed = _listed([each.path for each in files], dry_run)
    tell(f"{'would upload' if dry_run else 'uploading'} {count} to {_where(destination, state)}: {listed}")
    if left:
        tell(f"left behind: {_listed(left, dry_run)}")
    if dry_run:
        return
    done = upload(before, files, destination, state, tell)
    if done.pr_url is not None:
        tell(f"opened pull request {done.pr_num}: {done.pr_url}")
    elif done.oid == state.commit:
        tell(f"{destination.name} had all of it at {done.oid}: nothing was committed")
    else:
        tell(f"uploaded: {done.commit_url}")


def _parted(before: Contents, checkpoint: Checkpoint) -> tuple[list[Entry], list[str]]:
    """What goes up, and what stays.

    A link out of the folder leads to what nobody meant to publish, unless the audit has
    read it and found a checkpoint's file.
    """
    read = {*checkpoint.json_files.read, *(file.name for file in checkpoint.files)}
    files = [each for each in before.files if each.outside is None or each.path in read]
    links = [each.path for each in before.files if each.outside is not None and each.path not in read]
    return files, sorted([*before.left, *links])


def _allowed(checkpoint: Checkpoint, destination: Destination, state: State) -> None:
    """Raise what makes an upload go wrong that can be seen before it."""
    missing = state.private is not None and state.commit is None
    if missing and (destination.revision or "").startswith("refs/"):
        raise Unreadable("no-such-revision", destination.name, "the repo has no such revision")
    if destination.private and state.private is False:
        told = "it is there and public, and --private makes only a new repo private"
        raise Unreadable("public-repo", destination.repo, told)
    if stale := leftovers(checkpoint, state.paths):
        # A branch that is made begins with the files of the default one.
        holder = destination.repo if missing else destination.name
        told = f"it holds {', '.join(stale)}, which the folder lacks and an engine would read too"
        raise Unreadable("stale-files", holder, f"{told}: remove it there, or push elsewhere")


def _where(destination: Destination, state: State) -> str:
    new = f", a new {'private ' if destination.private else ''}repo" if state.private is None else ""
    branch = ", a new branch" if state.private is not None and state.commit is None else ""
    return f"{destination.name}{new}{branch}{' as a pull request' if destination.create_pr else ''}"


def _listed(paths: Sequence[str], all_of_them: bool) -> str:
    if all_of_them or len(paths) <= MOST_NAMED:
        return ", ".join(paths)
    return f"{', '.join(paths[:MOST_NAMED])} and {len(paths) - MOST_NAMED} more"
