"""What keeps the Hub from taking something, as an `Unreadable`."""

import contextlib
from collections.abc import Iterator
from typing import Final

from huggingface_hub import constants
from huggingface_hub.errors import (
    GatedRepoError,
    HfHubHTTPError,
    HFValidationError,
    LocalTokenNotFoundError,
    OfflineModeIsEnabled,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)

from dflash_audit.errors import Unreadable
from dflash_audit.sources.hub import HTTP_CLIENTS, explain, told_of

NO_TOKEN: Final = "no token: set HF_TOKEN, or log in with `hf auth login`"

INTERNAL: Final = 500
"""From this HTTP status on a server does not know itself what became of a request."""

MOST_TOLD: Final = 300
"""Characters of what a server says."""

UPLOADERS: Final = frozenset((*HTTP_CLIENTS, "hf_xet"))
"""Packages whose exceptions are of the network."""


@contextlib.contextmanager
def explained(subject: str) -> Iterator[None]:
    """Turn what a call of huggingface_hub raises into an `Unreadable` about `subject`.

    Nothing else belongs into the body: an error of the program itself would be taken for the Hub's.
    """
    with told_of(subject, _explain):
        yield


def leaves_open(error: Unreadable) -> bool:
    """Whether the Hub may have done what it was asked for: its answer did not come, or was none."""
    cause = error.__context__
    answered = isinstance(cause, HfHubHTTPError) and cause.response.status_code < INTERNAL
    return error.kind in ("network", "bad-answer") and not answered


def _explain(error: BaseException) -> tuple[str, str] | None:
    """The kind and the reason of a failure, None for one that is not of the Hub, the network or the disk.

    What is not of an upload alone is told as it is of a reading.
    """
    hub = constants.ENDPOINT
    match error:
        case LocalTokenNotFoundError():
            return "no-token", NO_TOKEN
        case OfflineModeIsEnabled():
            return "network", "HF_HUB_OFFLINE is set, and this needs the Hub"
        case GatedRepoError() | RepositoryNotFoundError() | RevisionNotFoundError() | HFValidationError():
            return explain(error)
        case HfHubHTTPError():
            return _explain_status(error)
        case ValueError() if "README.md" in str(error):
            return "refused", f"{hub} does not take the card ({_short(str(error))})"
        case ValueError() | KeyError() | TypeError() | AttributeError():
            # How huggingface_hub says that an answer is not what a Hub sends.
            return "bad-answer", f"{hub} does not answer as a Hub does ({_short(str(error))})"
        case OSError() if error.filename is not None:
            return explain(error)
        case RuntimeError() if error.__cause__ is not None:  # around what happened to one of several files
            return _explain(error.__cause__)
    of_network = type(error).__module__.partition(".")[0] in UPLOADERS
    if isinstance(error, OSError | RuntimeError) or of_network:
        return "network", f"{hub} cannot be reached ({type(error).__name__}: {_short(str(error))})"
    return None


def _explain_status(error: HfHubHTTPError) -> tuple[str, str]:
    hub, status = constants.ENDPOINT, error.response.status_code
    said = f" ({_short(error.server_message)})" if error.server_message else ""
    reasons = {
        401: ("no-access", f"{hub} answers 401: set HF_TOKEN to a token that is valid"),
        403: ("no-access", f"{hub} answers 403: the token may not write there{said}"),
        404: ("no-such-source", f"{hub} answers 404: there is no such thing{said}"),
        409: ("conflict", f"{hub} answers 409, a conflict{said}"),
        412: ("conflict", "the repo was changed in the meantime, and nothing was committed: push again"),
        429: ("network", f"{hub} answers 429, too many requests: wait, and try again"),
    }
    return reasons.get(status, ("network", f"{hub} answers {status}{said}"))


def _short(text: str | None) -> str:
    words = " ".join((text or "").split())
    return words if len(words) <= MOST_TOLD else f"{words[:MOST_TOLD]}..."
