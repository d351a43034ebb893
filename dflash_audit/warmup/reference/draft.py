"""A draft's whole forward pass, as a server runs it for a request."""

import torch

from dflash_audit.forward import Forward
from dflash_audit.warmup.reference.blocks import Blocks
from dflash_audit.warmup.reference.context import project
from dflash_audit.warmup.reference.inputs import Inputs
from dflash_audit.warmup.reference.layer import Stream, layer, normed
from dflash_audit.warmup.reference.modules import Modules
from dflash_audit.warmup.reference.outputs import Outputs
from dflash_audit.warmup.reference.proposal import propose
from dflash_audit.warmup.reference.tables import Tables
from dflash_audit.warmup.reference.weights import Weights
from dflash_audit.warmup.watch import Watch


def run(forward: Forward, weights: Weights, inputs: Inputs, watch: Watch, guard: bool = True) -> Outputs:
    """From the target's features to the proposed tokens, in the dtype and on the device of `inputs`.

    Stages of the watch are `context`, `layer 0` and on, `norm`, `candidates` and,
    where the draft has such a head, `selector`, `markov`, `domino` or `lilicorr`.
    Layer by layer, each layer's weights are asked for once: a context does not
    depend on the layers, so its keys and values are made beside the block's.

    Args:
        guard: check ids before they index a table; without it they meet what a
            server would, which on a GPU ends the process's CUDA context.
    """
    with torch.inference_mode():
        return _run(Modules(forward, weights, watch, Tables(guard)), inputs)


def _run(modules: Modules, inputs: Inputs) -> Outputs:
    forward, watch = modules.forward, modules.watch
    blocks = Blocks(inputs.lengths, inputs.features.shape[0], forward.rows)
    with watch.stage("context"):
        context = watch.out(project(modules, inputs.features))
        stream: Stream = (_embedded(modules, inputs), None)
    for index in range(len(forward.layers)):
        with watch.stage(f"layer {index}"):
            stream = layer(modules, index, stream, context, blocks)
            watch.out(stream[0] if stream[1] is None else stream[0] + stream[1])
    with watch.stage("norm"):
        hidden = watch.out(normed(modules, "norm", stream)[0])
    ids, logits, tokens = propose(modules, hidden, context, inputs)
    return Outputs(hidden, ids, logits, tokens, tuple(modules.tables.out_of_range))


def _embedded(modules: Modules, inputs: Inputs) -> torch.Tensor:
    """The block's anchor and masks, [requests, rows, hidden]."""
    masks = inputs.anchors.new_full((inputs.anchors.shape[0], modules.forward.rows - 1), inputs.mask_id)
    ids = torch.cat((inputs.anchors.unsqueeze(-1), masks), dim=-1)
    if not modules.forward.own_embedding:
        return modules.tables.look_up("the target's embedding", inputs.embedding, ids)
    table = modules.weights.parameter("embed_tokens.weight")
    embedded = modules.tables.look_up("embed_tokens.weight", table, ids).to(inputs.features.dtype)
    return modules.watch.module("embed_tokens", embedded)
