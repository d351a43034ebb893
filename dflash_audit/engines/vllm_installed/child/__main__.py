"""The child's start: see `installed.child`."""

import sys

from dflash_audit.engines.installed.child.conversation import Started, converse


def start(capability: int) -> Started:
    """Import vLLM for a card of this compute capability (times ten)."""
    from dflash_audit.engines.vllm_installed.child.platform import be_rank_0_of, start_vllm

    version = start_vllm(capability)

    from dflash_audit.engines.installed.child.no_remote_code import run_no_remote_code
    from dflash_audit.engines.vllm_installed.child.recording import record

    run_no_remote_code()
    be_rank_0_of(1)
    return Started(version, record)


if __name__ == "__main__":
    converse("vLLM", start, int(sys.argv[1]))
