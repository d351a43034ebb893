"""A card and process groups for vLLM, where there are none.

Source: vLLM 0.33.0 `platforms/cuda.py`, `platforms/interface.py`, `distributed/parallel_state.py`.
"""

from types import SimpleNamespace
from typing import Any, Final

import torch

GROUPS: Final = ("_WORLD", "_TP", "_ETP", "_PP", "_DP", "_EP", "_DCP", "_PCP")
"""The names in `parallel_state` that hold a group of processes."""


def stand_on_the_card(capability: int) -> None:
    """Be on a card of this compute capability (times ten), which torch claims already."""
    import vllm.platforms
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

    vllm.platforms._current_platform = Card()


def serve_one_rank() -> None:
    """Put groups of one process in place, and read a config once."""
    from vllm.distributed import parallel_state
    from vllm.transformers_utils import repo_utils

    alone = SimpleNamespace(
        world_size=1, rank=0, rank_in_group=0, local_rank=0, ranks=[0], first_rank=0, last_rank=0,
        is_first_rank=True, is_last_rank=True, device=torch.device("cpu"), cpu_group=None, device_group=None,
    )  # fmt: skip
    for name in GROUPS:
        setattr(parallel_state, name, alone)
    # It waits two seconds and reads again what it could not read, as if a server of files had failed.
    repo_utils.time = SimpleNamespace(sleep=lambda seconds: None)
