"""The profile's choice of an attention backend beside that of the installed vLLM, card by card."""

import itertools
import json
import subprocess
import sys
from pathlib import Path

import pytest

from dflash_audit.cards import CARDS
from dflash_audit.engines.installed.packages import VLLM
from dflash_audit.engines.vllm.attention_backends import BACKENDS, Asked

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.skipif(VLLM.installed_version() != "0.33.0", reason="vllm 0.33.0 is not installed"),
]

HEAD_SIZES = (8, 12, 16, 24, 32, 40, 60, 64, 72, 96, 120, 128, 192, 256, 264, 320, 512, 520)
CACHES = ((False, False), (True, False), (True, True))
LAYERS = [
    Asked(size, sinks, *cache) for size, sinks, cache in itertools.product(HEAD_SIZES, (False, True), CACHES)
]

CLASSES = {
    "FlashAttentionBackend": "FLASH_ATTN",
    "FlashInferBackend": "FLASHINFER",
    "TritonAttentionBackend": "TRITON_ATTN",
    "FlexAttentionBackend": "FLEX_ATTENTION",
}


@pytest.mark.parametrize("capability", sorted({*CARDS.values()} - {70}))
def test_it_is_the_engines(capability: int) -> None:
    script = Path(__file__).with_name("ask_backends.py")
    done = subprocess.run(
        [sys.executable, script, str(capability), json.dumps(LAYERS)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    picked = [path and CLASSES[path.rpartition(".")[2]] for path in json.loads(done.stdout.splitlines()[-1])]
    chosen = [next((name for name, takes in BACKENDS.items() if takes(capability, a)), None) for a in LAYERS]
    assert [*zip(LAYERS, chosen, strict=True)] == [*zip(LAYERS, picked, strict=True)]
