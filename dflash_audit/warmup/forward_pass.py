"""A warm-up in the child: on which device, on which backend."""

import resource
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib import import_module
from typing import Final

import torch

from dflash_audit.engines import LIVE
from dflash_audit.engines.installed.packages import SGLANG
from dflash_audit.errors import Unreadable
from dflash_audit.warmup.events import Teller
from dflash_audit.warmup.job import Job
from dflash_audit.warmup.result import WarmUp

Pass = Callable[[Job, torch.device, Teller], WarmUp]

BACKENDS: Final[Mapping[str, str]] = {
    "reference": "reference_pass:reference_pass",
    "sglang": "sglang_pass:sglang_pass",
}
"""Name -> what runs it, as module:function of this package; each is imported when it is needed."""


def warm_up(job: Job, tell: Teller) -> WarmUp:
    """Do the job on its device and backend.

    Raises Unreadable (no-backend) where the backend does not run this engine, and what
    the backend raises.
    """
    device = _device(job.device)
    backend = _backend(job, device)
    tell.running(backend, str(device))
    module, _, function = BACKENDS[backend].partition(":")
    run: Pass = getattr(import_module(f"{__package__}.{module}"), function)
    return replace(run(job, device, tell), peak_bytes=_peak(device))


def _device(name: str) -> torch.device:
    """The device of that name; for `auto` the first GPU, or the CPU where there is none."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    device = torch.device(name)
    if device.type == "cuda":
        # So that a card that is not there is told before the first stage, as the machine's fault.
        device = torch.device("cuda", device.index or 0)
        torch.zeros(1, device=device)
        torch.cuda.set_device(device)
    return device


def _backend(job: Job, device: torch.device) -> str:
    """The backend that runs this engine; for `auto` SGLang itself on a GPU, else the reference."""
    live = job.engine in LIVE
    version = SGLANG.installed_version()
    own = live or job.engine == f"sglang-{version}"
    if job.backend == "reference" and live:
        told = "it tells no copies, without which the backend reference cannot be filled"
        raise Unreadable("no-backend", job.engine, told)
    if job.backend == "sglang" and not own:
        found = f"SGLang {version} is" if version else "no SGLang is"
        raise Unreadable("no-backend", job.engine, f"the backend sglang runs what is installed, and {found}")
    if job.backend == "auto":
        # Drafts are compared on the reference.
        return "sglang" if live or (own and device.type == "cuda" and not job.against) else "reference"
    return job.backend


def _peak(device: torch.device) -> int:
    """Most bytes that torch held on a GPU, or that the process held in memory, mapped files among them."""
    if device.type == "cuda":
        return int(torch.cuda.max_memory_allocated(device))
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
