"""What has to hold before SGLang is imported, which picks its kernels by the platform then."""

import os
import sys
from types import ModuleType
from typing import Final

CPU_ENVIRONMENT: Final = {
    "SGLANG_USE_CPU_ENGINE": "1",
    "TRITON_INTERPRET": "1",
    "CUDA_VISIBLE_DEVICES": "",
}
"""SGLang's own CPU paths, and Triton's interpreter for kernels that have none."""


def prepare(device: str) -> None:
    """Set the platform up for `device` (torch's name); may be called again.

    Raises RuntimeError where SGLang came first.
    """
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    if device != "cpu":
        return
    ready = all(os.environ.get(name) == value for name, value in CPU_ENVIRONMENT.items())
    if "sglang" in sys.modules and not ready:
        raise RuntimeError("SGLang was imported before the platform was set")
    os.environ.update(CPU_ENVIRONMENT)
    # sgl_kernel takes the module of this name for its compiled part, which needs a driver.
    compiled = ModuleType("common_ops")
    compiled.__file__ = "none on a CPU"
    sys.modules.setdefault("common_ops", compiled)
