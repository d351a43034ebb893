"""The real vLLM 0.33.0 where there is no GPU: a card is claimed, and groups of processes that are not there.

Source: vLLM 0.33.0 `platforms/cuda.py`, `platforms/interface.py`, `distributed/parallel_state.py`.
"""

import logging
import os
import warnings
from types import SimpleNamespace
from typing import Any, Final

from dflash_audit.cards import CARDS, DEFAULT_CARD
from dflash_audit.engines.installed.child.card import claim_card

GROUPS: Final = ("_WORLD", "_TP", "_ETP", "_PP", "_DP", "_EP", "_DCP", "_PCP")
"""The names in `parallel_state` that hold a group of processes."""

MANY: Final = 64
"""Cards that the machine is said to have: as many as any number of ranks wants."""


BLACKWELL: Final = 100
"""From this compute capability on (times ten) attention is FlashInfer's, which makes a buffer on the card."""


class Stream:
    """What a mixture of experts makes one of as it is built."""


def start(capability: int = CARDS[DEFAULT_CARD]) -> str:
    """Import vLLM for a card of this compute capability (times ten); the name of the engine."""
    os.environ["VLLM_LOGGING_LEVEL"] = "ERROR"
    # DFlash2 and drafts of mixed layers are refused without it; a server on this card takes it by itself.
    os.environ["VLLM_USE_V2_MODEL_RUNNER"] = "1"
    logging.disable(logging.CRITICAL)
    warnings.filterwarnings("ignore")
    claim_card(capability)
    _be_on_the_card(capability)
    import torch
    from vllm import __version__ as version
    from vllm.transformers_utils import repo_utils

    torch.cuda.Stream = Stream
    if capability >= BLACKWELL:
        from vllm.v1.attention.backends import flashinfer

        flashinfer._get_multi_ctas_kv_counter_buffer = lambda *_, **__: None
    # A config that is refused is read again after two seconds, though it is no server that failed.
    repo_utils.time = SimpleNamespace(sleep=lambda seconds: None)
    return f"vllm-{version}"


def _be_on_the_card(capability: int) -> None:
    from vllm import platforms
    from vllm.platforms.cuda import NonNvmlCudaPlatform
    from vllm.platforms.interface import DeviceCapability

    class Card(NonNvmlCudaPlatform):  # type: ignore[misc]
        """What torch says of the card, and what torch cannot be made to say."""

        @classmethod
        def get_device_capability(cls, device_id: int = 0) -> Any:
            del device_id
            return DeviceCapability(*divmod(capability, 10))

        @classmethod
        def get_device_uuid(cls, device_id: int = 0) -> str:
            return str(device_id)

        @classmethod
        def device_count(cls) -> int:
            return MANY

    platforms._current_platform = Card()


def be_rank_0_of(ranks: int) -> None:
    """Put groups in place as they are on the first of so many tensor parallel ranks."""
    import torch
    from vllm.distributed import parallel_state

    for name in GROUPS:
        size = ranks if name in ("_WORLD", "_TP", "_ETP") else 1
        processes = SimpleNamespace(size=lambda size=size: size, rank=lambda: 0)
        group = SimpleNamespace(
            world_size=size, rank=0, rank_in_group=0, local_rank=0, ranks=[*range(size)], first_rank=0,
            last_rank=size - 1, is_first_rank=True, is_last_rank=True, device=torch.device("cpu"),
            cpu_group=processes, device_group=processes,
        )  # fmt: skip
        setattr(parallel_state, name, group)
