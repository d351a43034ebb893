"""The child's start: see `installed.child`."""

import sys

from dflash_audit.engines.installed.child.card import claim_card
from dflash_audit.engines.installed.child.conversation import Started, converse


def start(capability: int) -> Started:
    """Import SGLang for a card of this compute capability (times ten)."""
    claim_card(capability)
    import sglang

    from dflash_audit.engines.installed.child.no_remote_code import run_no_remote_code
    from dflash_audit.engines.sglang_installed.child.recording import prepare, record
    from dflash_audit.engines.sglang_installed.child.without_gpu import replace_what_needs_a_gpu

    run_no_remote_code()
    prepare()
    replace_what_needs_a_gpu()
    return Started(sglang.__version__, record)


if __name__ == "__main__":
    converse("SGLang", start, int(sys.argv[1]))
