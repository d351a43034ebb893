"""The candidate selector: how well a candidate follows each of the slot before.

Source: SGLang 0.5.23 `srt/models/dflash.py`, `CandidateSelector` and
`DFlash2DraftModel._transform_unary_logits`.
"""

import torch

from dflash_audit.forward import Selector
from dflash_audit.warmup.reference.modules import Modules

NAME = "candidate_selector"


def transformed(selector: Selector, logits: torch.Tensor) -> torch.Tensor:
    """The head's logits, scaled and capped in float32."""
    logits = logits.float() * selector.multiplier
    return logits if selector.softcap is None else torch.tanh(logits / selector.softcap) * selector.softcap


def lattice(
    modules: Modules, ids: torch.Tensor, logits: torch.Tensor, hidden: torch.Tensor, anchors: torch.Tensor
) -> torch.Tensor:
    """[requests, slots, k] candidates -> [requests, slots, previous, next]; the first follow the anchor."""
    projected = modules.linear(f"{NAME}.hidden_projection", hidden)

    def coded(table: str, tokens: torch.Tensor) -> torch.Tensor:
        name = f"{NAME}.{table}_codebook"
        return modules.tables.look_up(name, modules.weights.parameter(name), tokens).to(hidden.dtype)

    first = anchors[:, None, None].expand(-1, 1, ids.shape[-1])
    previous = coded("predecessor", torch.cat((first, ids[:, :-1]), dim=1))
    edges = torch.einsum("bspr,bscr->bspc", previous * projected[:, :, None], coded("successor", ids))
    return modules.watch.module(NAME, logits[:, :, None] + edges)
