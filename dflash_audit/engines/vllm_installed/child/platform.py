"""vLLM where there is no GPU: a card is claimed, and groups of processes that are not there.

Source: vLLM 0.33.0 `platforms/cuda.py`, `platforms/interface.py`, `distributed/parallel_state.py`,
`v1/attention/backends/flashinfer.py`.
"""

import os
from contextlib import suppress
from types import SimpleNamespace
from typing import Any, Final

from dflash_audit.engines.installed.child.card import claim_card

ENVIRONMENT: Final = {
    "VLLM_LOGGING_LEVEL": "ERROR",
    "VLLM_NO_USAGE_STATS": "1",
    # DFlash2 and drafts of mixed layers are refused without it; a server on a new card takes it by itself.
    "VLLM_USE_V2_MODEL_RUNNER": "1",
}

GROUPS: Final = ("_WORLD", "_TP", "_ETP", "_PP", "_DP", "_EP", "_DCP", "_PCP")
"""The names in `parallel_state` that hold a group of processes."""

OF_RANKS: Final = ("_WORLD", "_TP", "_ETP")
"""Those that all tensor parallel ranks are in."""

MANY: Final = 64
"""Cards that the machine is said to have: as many as any number of ranks wants."""

FLASHINFER: Final = 80
"""From this compute capability on (times ten) attention may be FlashInfer's, with a buffer on the card."""


class Stream:
    """What a mixture of experts makes one of as it is built."""


def start_vllm(capability: int) -> str:
    """Import vLLM for a card of this compute capability (times ten); its version.

    Raises `NoDriver`.
    """
    os.environ.update(ENVIRONMENT)
    claim_card(capability)
    _stand_on_the_card(capability)
    import torch
    from vllm import __version__ as version
    from vllm.transformers_utils import repo_utils

    torch.cuda.Stream = Stream
    if capability >= FLASHINFER:
        _leave_out_the_counter()
    # It waits two seconds and reads again what it could not read, as if a server of files had failed.
    repo_utils.time = SimpleNamespace(sleep=lambda seconds: None)
    return str(version)


def _stand_on_the_card(capability: int) -> None:
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


def _leave_out_the_counter() -> None:
    """The buffer that attention counts in: no parameter, and on the card alone."""
    # Where the backend cannot be imported, vLLM takes another.
    with suppress(ImportError):
        from vllm.v1.attention.backends import flashinfer

        flashinfer._get_multi_ctas_kv_counter_buffer = lambda *_, **__: None


def be_rank_0_of(ranks: int) -> None:
    """Put groups in place as they are on the first of so many tensor parallel ranks."""
    import torch
    from vllm.distributed import parallel_state

    for name in GROUPS:
        size = ranks if name in OF_RANKS else 1
        processes = SimpleNamespace(size=lambda size=size: size, rank=lambda: 0)
        group = SimpleNamespace(
            world_size=size, rank=0, rank_in_group=0, local_rank=0, ranks=[*range(size)], first_rank=0,
            last_rank=size - 1, is_first_rank=True, is_last_rank=True, device=torch.device("cpu"),
            cpu_group=processes, device_group=processes,
        )  # fmt: skip
        setattr(parallel_state, name, group)
