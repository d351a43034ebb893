"""From a folder and its inputs to the outputs of the real draft."""

from dflash_audit.warmup.reference.inputs import Inputs
from dflash_audit.warmup.reference.outputs import Outputs
from dflash_audit.warmup.sglang_live.live_draft import LiveDraft
from dflash_audit.warmup.sglang_live.platform import prepare
from dflash_audit.warmup.watch import Watch


def run_live(draft: LiveDraft, inputs: Inputs, watch: Watch) -> Outputs:
    """Build, load and run the draft on the device of `inputs`, in bfloat16 as a server does.

    Stages of the watch are `build`, `load`, `context`, `layer 0` and on, `norm`,
    `candidates` and, where the draft has such a head, `selector`, `markov`, `domino`
    or `lilicorr`; the outputs of the last three tell of tokens alone. What nothing
    fills is poison. Run it in a process of its own: it changes SGLang on a CPU, and
    an assert on a GPU ends the process's CUDA context.

    Raises what SGLang raises, and NotImplementedError for a scheme that has no
    stand-in on a CPU.
    """
    device = inputs.features.device
    prepare(device.type)
    from dflash_audit.warmup.sglang_live.draft import built, loaded
    from dflash_audit.warmup.sglang_live.forward import forward

    with watch.stage("build"):
        real = built(draft, device)
    with watch.stage("load"):
        loaded(real, device)
    return forward(real, draft, inputs, watch)
