"""What holds for all tests."""

from hypothesis import settings

# How long an example takes is a matter of the machine, and a busy one is no failure.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")
