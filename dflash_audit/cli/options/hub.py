"""What of the Hub is written to: a repo, or a pull request."""

import os
from typing import Annotated

import typer

from dflash_audit.cli.options.words import given, known
from dflash_audit.printable import printable


def a_folder(source: str) -> None:
    """A usage error where something else than a folder of this machine is to be uploaded."""
    from dflash_audit.sources.source import find_repo

    if os.path.isfile(source) or find_repo(source) is not None:
        raise typer.BadParameter(f"{printable(source)} is no folder here: push uploads one.")


def one_target(create_pr: bool, revision: str | None) -> None:
    """A usage error where a pull request is to be opened from another branch than the default one."""
    if create_pr and revision is not None:
        raise typer.BadParameter("--create-pr opens a pull request into the default branch: no --revision")


def _repo(text: str) -> str:
    """`org/name`, with or without `hf://`, and nothing else."""
    from dflash_audit.sources.repo import parse_repo

    repo = parse_repo(text)
    if repo is None or repo.revision is not None or repo.folder:
        raise typer.BadParameter(f"{printable(text)} is no repo of the Hub: org/name")
    return repo.id


def _repo_with_folder(text: str) -> str:
    """`org/name` or `org/name:folder/`, with or without `hf://`, and no revision."""
    from dflash_audit.sources.repo import parse_repo

    repo = parse_repo(text)
    if repo is None or repo.revision is not None:
        raise typer.BadParameter(f"{printable(text)} is no repo of the Hub: org/name, org/name:folder/")
    return repo.name


def _review_format(name: str) -> str:
    return known(name.lower(), ("text", "json", "markdown"), "format of a review")


FolderToPush = Annotated[str, typer.Argument(metavar="FOLDER", help="The folder of a checkpoint.")]
RepoToPush = Annotated[
    str, typer.Argument(parser=_repo, metavar="REPO", help="Where it goes: org/name. Made if need be.")
]
RevisionToPush = Annotated[
    str | None,
    typer.Option(
        "--revision",
        parser=given,
        metavar="TEXT",
        help="A branch, made if need be, or refs/pr/1, to commit to.",
    ),
]
RepoOfPullRequest = Annotated[
    str,
    typer.Argument(
        parser=_repo_with_folder, metavar="REPO", help="A repo of the Hub: org/name, org/name:folder/."
    ),
]
PullRequestNumber = Annotated[int, typer.Argument(min=1, metavar="NUMBER", help="Its pull request.")]
ReviewFormat = Annotated[
    str,
    typer.Option(
        "--format",
        parser=_review_format,
        metavar="FORMAT",
        help="text, json, or markdown: what --comment would post.",
    ),
]
