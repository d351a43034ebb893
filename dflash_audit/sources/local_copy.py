"""Where a checkpoint's weights lie on this machine."""

from pathlib import Path

from dflash_audit.sources.checkpoint import Checkpoint


def local_copy(checkpoint: Checkpoint) -> Path:
    """The folder that its files lie in, under their names; those of a repo are downloaded first.

    Raises `Unreadable`: disk-full, unwritable, not-cached, and what reading a repo does.
    """
    if checkpoint.origin.kind == "hub":
        # Only here, because it takes a moment to import.
        from dflash_audit.sources.hub_download import download

        return download(checkpoint)
    path = Path(checkpoint.origin.id)
    return path if path.is_dir() else path.parent
