"""Audits several at once, in threads: what takes the time is the network, and one session serves them all."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import NamedTuple

from dflash_audit.errors import Unreadable
from dflash_audit.formats.json_report import document
from dflash_audit.formats.json_text import json_text
from dflash_audit.report import Report
from dflash_audit.sources.source import origin
from dflash_audit.sweeping.row import Row, row


class Done(NamedTuple):
    """A source's report as one line of JSON, and what stays of it."""

    source: str
    line: str
    row: Row


def each(sources: Iterable[str], audit: Callable[[str], Report], jobs: int) -> Iterator[Done]:
    """The sources' reports in the order in which they are done, at most `jobs` at once.

    Where the caller stops early, what is under way is left behind.
    """
    pool = ThreadPoolExecutor(jobs)
    under_way: set[Future[Done]] = set()
    try:
        for source in sources:
            if len(under_way) >= jobs:
                finished, under_way = wait(under_way, return_when=FIRST_COMPLETED)
                yield from (future.result() for future in finished)
                del finished
            under_way.add(pool.submit(_done, source, audit))
        while under_way:
            finished, under_way = wait(under_way, return_when=FIRST_COMPLETED)
            yield from (future.result() for future in finished)
            del finished
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _done(source: str, audit: Callable[[str], Report]) -> Done:
    try:
        told = document(audit(source))
    except Exception as error:  # of a draft that the audit stumbles over, the others are not to suffer
        failed = Unreadable(
            "audit-failed", source, f"the audit itself failed ({type(error).__name__}: {error})"
        )
        told = document(Report(origin(source, None), error=failed))
    return Done(source, json_text(told), row(told))
