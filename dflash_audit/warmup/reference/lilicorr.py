"""The LiLiCorr head: attention over all candidates of all slots, then how well they follow each other.

Source: SGLang 0.5.23 `srt/models/lilicorr.py`, `LiLiCorrHead`;
`srt/speculative/lilicorr_utils.py`, `LiLiCorrDraftSampler`.
"""

import torch
import torch.nn.functional as F

from dflash_audit.forward import LiLiCorr
from dflash_audit.warmup.reference.candidates import Candidates
from dflash_audit.warmup.reference.modules import Modules

NAME = "lilicorr"
FEATURE_EPS = 1e-5
"""The epsilon of `torch.nn.LayerNorm`, which norms the features."""


def lattice(
    modules: Modules,
    head: LiLiCorr,
    candidates: Candidates,
    hidden: torch.Tensor,
    context: torch.Tensor,
    embedding: torch.Tensor,
) -> torch.Tensor:
    """Scores of candidates after those of the slot before.

    Args:
        hidden: the rows of the slots, [requests, slots, hidden].
        context: the last projected context token of each request, [requests, hidden].
        embedding: the target's, [tokens, hidden].

    Returns:
        [requests, slots, previous, next]; the first slot's rows are all the anchor's.
    """
    states = _states(modules, head, candidates, hidden, embedding)
    relative, same = _bias_tables(modules, hidden.dtype)
    bias = modules.watch.module(NAME, attention_bias(head, relative, same, slots=hidden.shape[1]))
    for index in range(head.layers):
        states = _layer(modules, f"{NAME}.layers.{index}", head, states, bias)
    states = modules.plain_norm(f"{NAME}.output_norm", states).unflatten(1, (-1, head.top_k))
    anchor = modules.linear(f"{NAME}.context_proj", context)
    anchor = modules.plain_norm(f"{NAME}.anchor_norm", anchor)
    start, pairs = _factors(modules, head, states, anchor)
    start = start[:, None, None].expand(-1, 1, head.top_k, -1)
    return head.logit_scale * torch.cat((start, pairs), dim=1).float()


def _states(
    modules: Modules, head: LiLiCorr, candidates: Candidates, hidden: torch.Tensor, embedding: torch.Tensor
) -> torch.Tensor:
    """What is known of each candidate: [requests, slots * k, own hidden]."""
    tokens = modules.tables.look_up("the target's embedding", embedding, candidates.ids)
    if head.hidden_size != modules.forward.hidden_size:
        tokens = modules.linear(f"{NAME}.token_proj", tokens)
    states = tokens + modules.linear(f"{NAME}.pass_hidden_proj", hidden).unsqueeze(-2)
    name = f"{NAME}.feature_norm"
    weight, bias = (modules.parameter(f"{name}.{part}", hidden.dtype) for part in ("weight", "bias"))
    normed = F.layer_norm(features(candidates).to(hidden.dtype), weight.shape, weight, bias, FEATURE_EPS)
    states = states + _mlp(modules, f"{NAME}.feature_mlp", modules.watch.module(name, normed))
    states = states + modules.parameter(f"{NAME}.slot_embedding", hidden.dtype)[0, :, : hidden.shape[1]]
    states = states + modules.parameter(f"{NAME}.rank_embedding", hidden.dtype)[0]
    return modules.watch.module(NAME, states.flatten(1, 2))


def features(candidates: Candidates) -> torch.Tensor:
    """[requests, slots, k, 5]: log probability, probability, gap to the best, rank, is it the best."""
    log_probs = candidates.logits.float() - candidates.all_logits.float().logsumexp(dim=-1, keepdim=True)
    count = log_probs.shape[-1]
    ranks = torch.arange(count, device=log_probs.device)
    columns = (
        log_probs,
        log_probs.exp(),
        log_probs - log_probs.amax(dim=-1, keepdim=True),
        (ranks / max(count - 1, 1)).expand_as(log_probs),
        (ranks == 0).float().expand_as(log_probs),
    )
    return torch.stack(columns, dim=-1)


def _bias_tables(modules: Modules, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    names = ("relative_slot_bias", "same_slot_bias")
    relative, same = (modules.parameter(f"{NAME}.{name}", dtype) for name in names)
    return relative, same


def attention_bias(head: LiLiCorr, relative: torch.Tensor, same: torch.Tensor, slots: int) -> torch.Tensor:
    """By the distance of two candidates' slots: [heads, slots * k, slots * k]."""
    slot = torch.arange(slots, device=relative.device).repeat_interleave(head.top_k)
    distance = slot[:, None] - slot[None, :]
    return relative[:, distance + head.block_size - 1] + (distance == 0) * same[:, None, None]


def _layer(
    modules: Modules, name: str, head: LiLiCorr, states: torch.Tensor, bias: torch.Tensor
) -> torch.Tensor:
    normed = modules.plain_norm(f"{name}.attn_norm", states)
    states = states + _attention(modules, f"{name}.attn", head, normed, bias)
    return states + _mlp(modules, f"{name}.mlp", modules.plain_norm(f"{name}.mlp_norm", states))


def _attention(
    modules: Modules, name: str, head: LiLiCorr, states: torch.Tensor, bias: torch.Tensor
) -> torch.Tensor:
    weight, shift = (modules.parameter(f"{name}.in_proj_{part}", states.dtype) for part in ("weight", "bias"))
    qkv = modules.watch.module(name, F.linear(states, weight, shift))
    q, k, v = (part.unflatten(-1, (head.heads, -1)).transpose(1, 2) for part in qkv.chunk(3, dim=-1))
    attended = F.scaled_dot_product_attention(q, k, v, attn_mask=bias)
    return modules.linear(f"{name}.out_proj", attended.transpose(1, 2).flatten(2))


def _mlp(modules: Modules, name: str, x: torch.Tensor) -> torch.Tensor:
    return modules.linear(f"{name}.down_proj", F.silu(modules.linear(f"{name}.up_proj", x)))


def _factors(
    modules: Modules, head: LiLiCorr, states: torch.Tensor, anchor: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Cosines of the anchor with the first slot's candidates, and of each slot's with the next one's.

    Args:
        states: [requests, slots, k, own hidden]
        anchor: [requests, own hidden]

    Returns:
        [requests, k] and [requests, slots - 1, k, k].
    """
    beside = anchor[:, None, None].expand_as(states)
    joint = torch.cat((states, beside, states * beside), dim=-1)
    joint = F.silu(modules.linear(f"{NAME}.factor_input_proj", joint))

    def factor(name: str, x: torch.Tensor) -> torch.Tensor:
        return F.normalize(modules.linear(f"{NAME}.{name}", x), dim=-1, eps=head.vector_eps)

    outgoing, incoming = factor("out_head", joint), factor("in_head", joint)
    first = factor("anchor_out_head", anchor)
    start = (first[:, None] * incoming[:, 0]).sum(dim=-1)
    return start, outgoing[:, :-1] @ incoming[:, 1:].transpose(-1, -2)
