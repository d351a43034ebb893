"""The child does not outlive its parent, however that ends."""

import os
import signal
from typing import Final

STDIN: Final = 0
OTHERS: Final = (1, 64)
"""The numbers, from and to before, of what else a process may hold open that has only just begun."""


def hold() -> None:
    """End this process, and all that it starts, once its standard input ends, whose other end its parent has.

    A process of its own waits for that, because native code may keep Python from
    running a thread. It is to be started before any other thread is, and holds
    nothing of this process but that input: the parent must see this one end.
    """
    group = os.getpgrp()
    # Only the leader of a group may take it along: one that a person started by hand shares a shell's.
    leads = group == os.getpid()
    if leads and os.fork() == 0:
        os.closerange(*OTHERS)
        while os.read(STDIN, 1):
            pass
        os.killpg(group, signal.SIGKILL)
