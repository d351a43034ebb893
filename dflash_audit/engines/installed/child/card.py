"""Make torch say that this machine has one card, of any kind, and no other.

SGLang picks quantization methods, schemes and kernels by the platform when it is
imported, and vLLM its platform and its attention, so a draft that is built without
this is another one than a server's.
"""

import ctypes
import os
import subprocess
import tempfile
from types import SimpleNamespace
from typing import Any, Final

DRIVER: Final = (
    "cuCtxGetCurrent", "cuCtxSetCurrent", "cuDeviceGet", "cuDeviceGetAttribute",
    "cuDevicePrimaryCtxRetain", "cuDriverGetVersion", "cuFuncSetAttribute", "cuGetErrorName",
    "cuGetErrorString", "cuGetProcAddress_v2", "cuInit", "cuLaunchKernel", "cuLaunchKernelEx",
    "cuMemAddressFree", "cuMemAddressReserve", "cuMemCreate", "cuMemGetAllocationGranularity",
    "cuMemMap", "cuMemRelease", "cuMemSetAccess", "cuMemUnmap", "cuModuleGetFunction",
    "cuModuleLoadData", "cuPointerGetAttribute", "cuTensorMapEncodeIm2col", "cuTensorMapEncodeTiled",
)  # fmt: skip
"""What the compiled kernels of SGLang and vLLM link against; nothing here calls one."""


class NoDriver(Exception):
    """There is no CUDA driver's library, and none can be made up."""


def claim_card(capability: int) -> None:
    """Claim a card of this compute capability (times ten). Call before SGLang or vLLM is imported.

    Raises `NoDriver`.
    """
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    os.environ["HF_HUB_OFFLINE"] = "1"
    import torch

    major, minor = divmod(capability, 10)
    card = SimpleNamespace(
        name="NVIDIA H200", major=major, minor=minor, uuid="0", gcnArchName="", total_memory=141 << 30,
        L2_cache_size=60 << 20, multi_processor_count=132, max_threads_per_multi_processor=2048,
        regs_per_multiprocessor=65536, shared_memory_per_block_optin=232448, warp_size=32,
    )  # fmt: skip
    claims: dict[str, Any] = {
        "is_available": True,
        "device_count": 1,
        "current_device": 0,
        "set_device": None,
        "get_device_name": card.name,
        "get_device_capability": (major, minor),
        "get_device_properties": card,
    }
    for name, answer in claims.items():
        setattr(torch.cuda, name, lambda *_, answer=answer, **__: answer)
    _load_driver()


def _load_driver() -> None:
    """The driver's library, or one with its names alone where the machine has none."""
    try:
        ctypes.CDLL("libcuda.so.1", ctypes.RTLD_GLOBAL)
        return
    except OSError:
        pass
    source = "".join(f"int {name}(void) {{ return 999; }}\n" for name in DRIVER)
    with tempfile.TemporaryDirectory() as folder:
        library = f"{folder}/libcuda.so.1"
        gcc = ["gcc", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-x", "c", "-", "-o", library]
        try:
            subprocess.run(gcc, input=source, text=True, check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            raise NoDriver(
                "without a CUDA driver on this machine it needs gcc, to stand in for one"
            ) from None
        ctypes.CDLL(library, ctypes.RTLD_GLOBAL)
