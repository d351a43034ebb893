"""Record what SGLang's own draft classes compute: writes fixtures/reference/sglang.safetensors.

    python scripts/record_reference.py fixtures/reference/sglang.safetensors

Run it with the Python of an environment that holds sglang==0.5.23; it needs no
GPU. For every draft of tests/reference/families.py it builds the real class on
the CPU in float32, fills it with the random weights that the tests use, and runs
the context, the block, and what proposes the tokens: the selector, Markov,
Domino and LiLiCorr code of the release. Attention is SGLang's Triton kernel
under Triton's interpreter. Replaced: the KV pool (plain tensors), the target's
embedding and head (random). Rotary embeddings come from the real `get_rope`, with
the table in float32 as on a GPU. The seed of fixtures/ is run in bfloat16, as served,
from its own file by the class's own `load_weights`.
"""

import argparse
import json
import logging
import os
import sys
import tempfile
import types
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

os.environ.update(
    CUDA_VISIBLE_DEVICES="",
    HF_HUB_OFFLINE="1",
    SGLANG_ROPE_CACHE_FP32="1",
    SGLANG_USE_CPU_ENGINE="1",
    TORCHDYNAMO_DISABLE="1",
    TRITON_INTERPRET="1",
)
warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)
# The compiled kernels are looked for at import and link against CUDA; nothing here calls one.
stub = sys.modules.setdefault("common_ops", types.ModuleType("common_ops"))
stub.__file__ = "<none>"

import torch  # noqa: E402
from reference.families import (  # noqa: E402
    BLOCKS,
    CONTEXT,
    FAMILIES,
    HEAD_SIZE,
    POOL,
    ROPE_POSITIONS,
    ROPES,
    SEED,
    draft,
)
from reference.random_draft import FIXTURES, draft_of, random_weight  # noqa: E402
from reference.zlab_cases import SEED_DRAFT, case, in_dtype  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402

from dflash_audit.warmup.reference import Inputs, random_inputs  # noqa: E402

Tensors = dict[str, torch.Tensor]


def begin() -> None:
    from sglang.srt.server_args import ServerArgs
    from sglang.test.parallel_groups import publish

    publish(ServerArgs(model_path="dummy", device="cpu", tp_size=1), role="scheduler")


def hf_config(config: dict[str, Any]) -> Any:
    """The config as SGLang reads it from a checkpoint's folder."""
    from sglang.srt.configs.model_config import ModelConfig

    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "config.json").write_text(json.dumps(config))
        read = ModelConfig(folder, is_draft_model=True, dtype="bfloat16", speculative_algorithm="DFLASH")
    return read.hf_config


def build(config: dict[str, Any]) -> Any:
    """The real class of a draft, in torch's default dtype."""
    from sglang.srt.models.registry import ModelRegistry

    cls, _ = ModelRegistry.resolve_model_cls(config["architectures"])
    return cls(config=hf_config(config), quant_config=None).eval()


def filled(model: Any, tensors: Tensors) -> Any:
    """`model` with `tensors` by parameter name."""
    parameters = dict(model.named_parameters())
    assert set(parameters) == set(tensors), set(parameters) ^ set(tensors)
    for name, parameter in parameters.items():
        parameter.data.copy_(tensors[name])
    for module in model.modules():
        if hasattr(module, "refresh_gemma_weight"):
            module.refresh_gemma_weight()
    if model.lilicorr is not None:
        model.lilicorr.materialize_inference_buffers(torch.device("cpu"), torch.float32)
    return model


class KernelAttention:
    """SGLang's extend kernel in place of `RadixAttention.forward`, over a context that all requests share."""

    def __init__(self, lengths: torch.Tensor, rows: int) -> None:
        self.lengths, self.rows = lengths, rows
        self.context: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}

    def install(self) -> None:
        from sglang.srt.layers.radix_attention import RadixAttention

        RadixAttention.forward = lambda layer, q, k, v, batch, **more: self(layer, q, k, v, **more)

    def __call__(self, layer: Any, q: Any, k: Any, v: Any, sinks: Any = None) -> torch.Tensor:
        from sglang.kernels.ops.attention.extend_attention import extend_attention_fwd
        from sglang.srt.layers.radix_attention import AttentionType

        window = layer.sliding_window_size
        windowed = window is not None and window > -1
        kept = torch.minimum(self.lengths, torch.tensor(window)) if windowed else self.lengths
        ends = list(zip(self.lengths.tolist(), kept.tolist(), strict=True))
        heads, dtype = layer.tp_q_head_num, q.dtype
        # In float32: Triton's interpreter multiplies no bfloat16.
        q, k, v = (
            part.reshape(-1, n, layer.head_dim).float().contiguous()
            for part, n in ((q, heads), (k, layer.tp_k_head_num), (v, layer.tp_v_head_num))
        )
        out = torch.empty_like(q)
        extend_attention_fwd(
            q, k, v, out, *(part.float() for part in self.context[layer.layer_id]),
            torch.arange(len(ends) + 1, dtype=torch.int32) * self.rows,
            torch.tensor([0, *kept.cumsum(0).tolist()], dtype=torch.int32),
            torch.cat([torch.arange(end - count, end) for end, count in ends]),
            None, layer.attn_type != AttentionType.ENCODER_ONLY, None, self.rows, 1.0, 1.0,
            sm_scale=layer.scaling, sliding_window_size=window if windowed else -1, sinks=sinks,
        )  # fmt: skip
        return out.view(-1, heads * layer.head_dim).to(dtype)


def hidden_states(model: Any, inputs: Inputs, rows: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The projected context and the last hidden states [requests, rows, hidden]."""
    attention = KernelAttention(inputs.lengths, rows)
    attention.install()
    context = model.project_target_hidden(inputs.features)
    positions = torch.arange(context.shape[0])
    for index, layer in enumerate(model.layers):
        own = layer.self_attn
        k, v = own.kv_proj_only(model.prepare_context_hidden_for_kv(layer, context))
        k = own.apply_k_rope(positions, own.apply_k_norm(k))
        shape = (-1, own.num_kv_heads, own.head_dim)
        attention.context[index] = (k.reshape(shape).contiguous(), v.reshape(shape).contiguous())
    requests = len(inputs.anchors)
    ids = torch.full((requests, rows), inputs.mask_id)
    ids[:, 0] = inputs.anchors
    places = (inputs.lengths[:, None] + torch.arange(rows)).flatten()
    own_embedding = getattr(model, "embed_tokens", None)
    embedded = None if own_embedding is not None else inputs.embedding[ids].flatten(0, 1)
    out = model(ids.flatten(), places, None, input_embeds=embedded)
    return context, out.hidden_states.view(requests, rows, -1)


def proposal(model: Any, inputs: Inputs, context: torch.Tensor, hidden: torch.Tensor) -> Tensors:
    """The tokens that SGLang proposes from the hidden states, and the scores that led to them."""
    head = SimpleNamespace(
        weight=inputs.head, org_vocab_size=inputs.head.shape[0], quant_method=None, tp_size=1
    )
    if model.candidate_selector is not None:
        return selector(model, inputs, head, hidden)
    if model.lilicorr is not None:
        return lilicorr(model, inputs, head, context, hidden)
    if getattr(model, "markov_head", None) is not None:
        return markov(model, inputs, head, hidden)
    if model.prefix_gru is not None:
        return domino(model, inputs, hidden)
    return {"tokens": (hidden[:, 1:] @ inputs.head.T).argmax(-1)}


def greedy(requests: int, slots: int) -> dict[str, torch.Tensor]:
    return {
        "uniforms": torch.zeros(requests, slots),
        "temperatures": torch.ones(requests),
        "greedy_mask": torch.ones(requests, dtype=torch.bool),
    }


def selector(model: Any, inputs: Inputs, head: Any, hidden: torch.Tensor) -> Tensors:
    from sglang.srt.models import dflash
    from sglang.srt.speculative.dflash_worker_v2 import _selector_lattice

    dflash._flashinfer_top_k = None  # it needs a GPU; torch.topk takes its place
    model.lm_head = head
    rows = hidden[:, 1:]
    ids, scores = _selector_lattice(model, rows, inputs.anchors)
    _, logits = model.compute_candidates(rows.reshape(-1, rows.shape[-1]))
    tokens, _ = model.candidate_selector.sample_path(
        candidate_ids=ids, scores=scores, **greedy(*rows.shape[:2])
    )
    return {"ids": ids, "logits": logits.view(ids.shape), "scores": scores, "tokens": tokens}


def lilicorr(model: Any, inputs: Inputs, head: Any, context: torch.Tensor, hidden: torch.Tensor) -> Tensors:
    from sglang.srt.speculative.lilicorr_utils import lilicorr_candidates, propose_lilicorr_block

    own, rows = model.lilicorr, hidden[:, 1:]
    anchor = context[inputs.lengths - 1]
    log_probs, ids = lilicorr_candidates(
        hidden_states=rows.reshape(-1, rows.shape[-1]), lm_head=head, topk=own.candidate_topk
    )
    shape = (*rows.shape[:2], own.candidate_topk)
    start, pairs = own.score(
        token_embeddings=inputs.embedding[ids.view(shape)].unsqueeze(1),
        candidate_log_probs=log_probs.view(shape).unsqueeze(1),
        pass_hidden=rows.unsqueeze(1),
        anchor_hidden=anchor.unsqueeze(1),
        anchor_valid=torch.ones(len(anchor), 1, dtype=torch.bool),
    )
    start, pairs = own.log_factors(start, pairs)
    tokens, _, _ = propose_lilicorr_block(
        head=own,
        draft_hidden=hidden,
        lm_head=head,
        embed_tokens=lambda tokens: inputs.embedding[tokens],
        anchor=anchor,
    )
    return {"ids": ids.view(shape), "start": start[:, 0], "pairs": pairs[:, 0], "tokens": tokens}


def markov(model: Any, inputs: Inputs, head: Any, hidden: torch.Tensor) -> Tensors:
    from sglang.srt.models import dspark
    from sglang.srt.speculative.dspark_components.dspark_draft import (
        DraftNoise,
        draft_markov_block,
        select_draft_hidden_without_anchor,
    )

    dspark.tensor_model_parallel_all_gather = lambda logits, dim: logits  # of one rank
    requests = hidden.shape[0]
    flat, rows = hidden.flatten(0, 1), hidden
    if not model.sample_from_anchor:
        flat, rows = select_draft_hidden_without_anchor(flat, bs=requests, gamma=model.gamma)
    model.lm_head = head
    base, _ = model.compute_base_logits(flat)
    tokens, steps = draft_markov_block(
        markov_head=model.markov_head,
        base_logits=base.view(requests, model.gamma, -1),
        anchor_tokens=inputs.anchors,
        draft_hidden=rows,
        step_temperatures=torch.zeros(requests),
        noise=DraftNoise(key=0, offset=torch.zeros(1, dtype=torch.int64)),
        tp_sync=SimpleNamespace(sync=lambda site, tokens: tokens),
    )
    return {"tokens": tokens, "steps": steps}


def domino(model: Any, inputs: Inputs, hidden: torch.Tensor) -> Tensors:
    from sglang.srt.speculative.domino_utils import domino_greedy_rollout

    def roll(pool: int) -> torch.Tensor:
        return domino_greedy_rollout(
            draft_hidden=hidden,
            bonus_tokens=inputs.anchors,
            target_embedding=lambda tokens: inputs.embedding[tokens],
            lm_head_weight=inputs.head,
            prefix_gru=model.prefix_gru,
            embed_proj=model.embed_proj,
            vocab_size=inputs.head.shape[0],
            shift_label=model.shift_label,
            candidate_pool_size=pool,
            in_cuda_graph=False,
        )

    return {"tokens": roll(2048), "pooled": roll(POOL)}


def families() -> Iterator[tuple[str, torch.Tensor]]:
    for name, config in FAMILIES.items():
        made = draft_of(config)
        inputs = random_inputs(made.forward, SEED, BLOCKS, CONTEXT, torch.float32, torch.device("cpu"))
        model = filled(build(config), made.weights.tensors)
        context, hidden = hidden_states(model, inputs, made.forward.rows)
        yield f"{name}/context", context
        yield f"{name}/hidden", hidden
        for part, tensor in proposal(model, inputs, context, hidden).items():
            yield f"{name}/{part}", tensor
        print(name, flush=True)


def seed() -> Iterator[tuple[str, torch.Tensor]]:
    config, made, inputs = case(SEED_DRAFT)
    inputs = in_dtype(inputs, torch.bfloat16)
    torch.set_default_dtype(torch.bfloat16)
    model = build(config)
    torch.set_default_dtype(torch.float32)
    model.load_weights(load_file(FIXTURES / SEED_DRAFT / "model.safetensors").items())
    context, hidden = hidden_states(model, inputs, made.forward.rows)
    yield f"{SEED_DRAFT}/hidden", hidden
    yield f"{SEED_DRAFT}/tokens", proposal(model, inputs, context, hidden)["tokens"]


def ropes() -> Iterator[tuple[str, torch.Tensor]]:
    """Two heads turned by each rotary embedding, as a draft's attention asks for it."""
    from sglang.srt.layers.rotary_embedding import base, rope_variant
    from sglang.srt.models.dflash import DFlashAttention

    rope_variant.get_device = lambda *_: "cpu"
    positions = torch.tensor(ROPE_POSITIONS)
    heads = random_weight("heads", (len(positions), 2 * HEAD_SIZE))
    for name, parameters in ROPES.items():
        config = SimpleNamespace(**draft("DFlashDraftModel"), get_text_config=lambda: SimpleNamespace())
        config.rope_parameters = None
        if parameters:
            config.rope_parameters = {"rope_theta": 10000.0, **parameters}
            config.partial_rotary_factor = parameters.get("partial_rotary_factor", 1.0)
        rotary = DFlashAttention(config, 0).rotary_emb
        turn = rotary
        if isinstance(rotary, rope_variant.DeepseekScalingRotaryEmbedding):
            # Its CPU code wants heads apart; a GPU runs the base class's on the same table.
            turn = lambda *given, own=rotary: base.RotaryEmbedding.forward_native(own, *given)  # noqa: E731
        for at in (positions, positions[:4]):
            part = heads[: len(at)].clone()
            yield f"rope/{name}/{len(at)}", turn(at, part, part.clone())[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path)
    target = parser.parse_args().file
    begin()
    with torch.inference_mode():
        recorded = {name: tensor.contiguous() for name, tensor in (*ropes(), *families(), *seed())}
    target.parent.mkdir(parents=True, exist_ok=True)
    recorded = {
        name: tensor.to(torch.int32) if tensor.dtype == torch.int64 else tensor.float()
        for name, tensor in recorded.items()
    }
    import sglang

    versions = {"sglang": sglang.__version__, "torch": torch.__version__}
    save_file(recorded, str(target), metadata=versions)


if __name__ == "__main__":
    main()
