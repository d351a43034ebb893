"""What holds for all tests."""

import signal

from hypothesis import settings

# How long an example takes is a matter of the machine, and a busy one is no failure.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")

# A shell starts what it runs in the background with Ctrl-C ignored, and a child inherits that: tests that
# interrupt one would wait for a program that never notices.
signal.signal(signal.SIGINT, signal.default_int_handler)
