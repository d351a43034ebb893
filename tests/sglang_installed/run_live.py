"""Runs the real draft and the reference on the same inputs, and prints what a test looks at.

    python run_live.py FOLDER ENGINE     (ENGINE: how the installed release is taken)

A process of its own: it changes SGLang for a CPU.
"""

import json
import sys
from pathlib import Path

import torch

from dflash_audit.engine_run import Conditions
from dflash_audit.engines import engine
from dflash_audit.engines.sglang.forward import forward_of
from dflash_audit.sources.disk import read_path
from dflash_audit.warmup.linear import DenseLinear
from dflash_audit.warmup.memory import Memory
from dflash_audit.warmup.reference import random_inputs, run
from dflash_audit.warmup.sglang_live.entry import run_live
from dflash_audit.warmup.sglang_live.live_draft import LiveDraft
from dflash_audit.warmup.sglang_live.platform import prepare
from dflash_audit.warmup.watch import Watch


class Dense:
    """The weights of a dense draft."""

    def __init__(self, memory: Memory) -> None:
        self.parameter = memory.parameter

    def linear(self, name: str) -> DenseLinear:
        return DenseLinear(self.parameter(f"{name}.weight"))


def main(folder: str, name: str) -> None:
    prepare("cpu")
    if name == "sglang-next":
        sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))
        from record_cases import apply_change

        apply_change()
    replayed = engine(name).replay(read_path(folder), Conditions())
    assert replayed.config and replayed.model_class and replayed.plan
    forward = forward_of(replayed.config, replayed.model_class)
    inputs = random_inputs(forward, 1, 3, 64, torch.bfloat16, torch.device("cpu"))
    watch = Watch(mend=True)
    live = run_live(LiveDraft(folder, forward.rows, forward.first_slot), inputs, watch)
    said = {
        "stages": [stage.name for stage in watch.stages],
        "sources": sorted(watch.sources),
        "finite": bool(torch.isfinite(live.hidden).all()),
        "hidden": live.hidden.float().tolist(),
    }
    if replayed.quantization is None:
        reference = run(forward, Dense(Memory(replayed.plan, Path(folder), "cpu")), inputs, Watch())
        said["reference"] = reference.hidden.float().tolist()
        said["same_tokens"] = bool((reference.tokens == live.tokens).all())
    print("SAID " + json.dumps(said), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
