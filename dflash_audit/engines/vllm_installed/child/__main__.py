"""The child's start: see `installed.child`."""

import os
import sys

from dflash_audit.engines.installed.child.card import claim_card
from dflash_audit.engines.installed.child.conversation import Started, converse

ENVIRONMENT = {
    "VLLM_LOGGING_LEVEL": "ERROR",
    "VLLM_NO_USAGE_STATS": "1",
    # Without it DFlash2 and drafts of mixed layers are refused, whatever they hold.
    "VLLM_USE_V2_MODEL_RUNNER": "1",
}


def start(capability: int) -> Started:
    """Import vLLM for a card of this compute capability (times ten)."""
    os.environ.update(ENVIRONMENT)
    claim_card(capability)
    from dflash_audit.engines.vllm_installed.child.platform import serve_one_rank, stand_on_the_card

    stand_on_the_card(capability)
    import vllm

    from dflash_audit.engines.installed.child.no_remote_code import run_no_remote_code
    from dflash_audit.engines.vllm_installed.child.recording import record

    run_no_remote_code()
    serve_one_rank()
    return Started(vllm.__version__, record)


if __name__ == "__main__":
    converse("vLLM", start, int(sys.argv[1]))
