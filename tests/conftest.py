"""What holds for all tests."""

import signal

from hypothesis import settings

from dflash_audit import bounded_match

# How long an example takes is a matter of the machine, and a busy one is no failure.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")

# A pattern that has no end has none after one second of the CPU either: `hostile/test_patterns.py` holds the
# program's own limit, as a process.
bounded_match.MATCH_SECONDS = 1  # type: ignore[misc]

# A shell starts what it runs in the background with Ctrl-C ignored, and a child inherits that: tests that
# interrupt one would wait for a program that never notices.
signal.signal(signal.SIGINT, signal.default_int_handler)
