"""The real draft's forward pass under a watch, from the target's features to the tokens.

Source: SGLang 0.5.23 `srt/speculative/dflash_worker_v2.py`, `_append_target_hidden_sequential`.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from sglang.srt.mem_cache.memory_pool import KVWriteLoc
from sglang.srt.model_executor.forward_context import ForwardContext, forward_context

from dflash_audit.engines.sglang_installed.child.draft import Draft
from dflash_audit.warmup.reference.inputs import Inputs
from dflash_audit.warmup.reference.outputs import Outputs
from dflash_audit.warmup.sglang_live.attention import attention_backend
from dflash_audit.warmup.sglang_live.batch import Batch, make_batch
from dflash_audit.warmup.sglang_live.heads import proposed
from dflash_audit.warmup.sglang_live.live_draft import LiveDraft
from dflash_audit.warmup.sglang_live.pools import Runner
from dflash_audit.warmup.watch import Watch


def forward(draft: Draft, live: LiveDraft, inputs: Inputs, watch: Watch) -> Outputs:
    """One pass; the draft's modules are watched for its time."""
    model, device = draft.model, inputs.features.device
    longest = int(inputs.lengths.max()) + live.rows
    runner = Runner(draft, live.rows, len(inputs.anchors), longest, device)
    batch = make_batch(runner, inputs, live.rows)
    backend = attention_backend(runner, device)
    context = ForwardContext(attn_backend=backend)
    with torch.inference_mode(), forward_context(context), _watched(model, watch):
        with watch.stage("context"):
            projected = watch.out(model.project_target_hidden(inputs.features))
            _cache_context(model, projected, inputs, batch, runner, watch)
        backend.init_forward_metadata(batch.forward_batch)
        hidden = _hidden(model, inputs, batch, watch).unflatten(0, batch.ids.shape)
        return proposed(model, live, hidden, projected, inputs, watch)


def _cache_context(
    model: Any, projected: torch.Tensor, inputs: Inputs, batch: Batch, runner: Runner, watch: Watch
) -> None:
    """The context's keys and values of every layer, copied to the slots of each request."""
    positions = torch.arange(len(projected), device=projected.device)
    for index, layer in enumerate(model.layers):
        attention = layer.self_attn
        keys, values = attention.kv_proj_only(model.prepare_context_hidden_for_kv(layer, projected))
        # A dense projection is sliced and multiplied without its module being called.
        name = f"layers.{index}.self_attn.qkv_proj"
        keys, values = watch.module(name, keys), watch.module(name, values)
        keys = attention.apply_k_rope(positions, attention.apply_k_norm(keys))
        heads = (attention.num_kv_heads, attention.head_dim)
        keys, values = keys.view(-1, *heads), values.reshape(-1, *heads)
        for slots, length in zip(batch.context_slots, inputs.lengths.tolist(), strict=True):
            runner.token_to_kv_pool.set_kv_buffer(
                attention.attn,
                KVWriteLoc(slots, physical=True),
                keys[:length].contiguous(),
                values[:length].contiguous(),
                attention.attn.k_scale,
                attention.attn.v_scale,
            )


def _hidden(model: Any, inputs: Inputs, batch: Batch, watch: Watch) -> torch.Tensor:
    """[requests * rows, hidden]; each layer and the last norm is a stage."""
    ids = batch.forward_batch.input_ids
    own = model.get_input_embeddings()
    embedded = inputs.embedding[ids] if own is None else own(ids)
    with _stages(model, watch):
        # The first layer's norm adds into its residual, which is this.
        out = model(ids, batch.forward_batch.positions, batch.forward_batch, input_embeds=embedded.clone())
    hidden: torch.Tensor = out.hidden_states
    return hidden


@contextmanager
def _stages(model: Any, watch: Watch) -> Iterator[None]:
    """A stage of the watch for every layer and for the norm behind them."""
    named = [(f"layer {index}", layer) for index, layer in enumerate(model.layers)] + [("norm", model.norm)]
    hooks = []
    for name, module in named:
        stage = ExitStack()

        def begin(module: Any, inputs: Any, stage: ExitStack = stage, name: str = name) -> None:
            stage.enter_context(watch.stage(name))

        def end(module: Any, inputs: Any, outputs: Any, stage: ExitStack = stage, name: str = name) -> None:
            hidden, residual = outputs if isinstance(outputs, tuple) else (outputs, None)
            watch.out(hidden if residual is None or name == "norm" else hidden + residual)
            stage.close()

        hooks += [module.register_forward_pre_hook(begin), module.register_forward_hook(end)]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


@contextmanager
def _watched(model: Any, watch: Watch) -> Iterator[None]:
    """Show the watch what comes out of every module that has parameters of its own."""

    def shown(name: str) -> Any:
        def show(module: Any, inputs: Any, outputs: Any) -> Any:
            if isinstance(outputs, tuple):
                return tuple(_show(watch, name, output) for output in outputs)
            return _show(watch, name, outputs)

        return show

    hooks = [
        module.register_forward_hook(shown(name))
        for name, module in model.named_modules()
        if any(True for _ in module.parameters(recurse=False))
    ]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def _show(watch: Watch, name: str, output: Any) -> Any:
    return watch.module(name, output) if torch.is_tensor(output) else output
