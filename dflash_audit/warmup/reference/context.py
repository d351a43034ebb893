"""From the target's features to the draft's context.

Source: SGLang 0.5.23 `srt/models/dflash.py`, `project_target_hidden` of
`DFlashDraftModel` and of `DFlashLagunaForCausalLM`.
"""

import torch

from dflash_audit.warmup.reference.modules import Modules


def project(modules: Modules, features: torch.Tensor) -> torch.Tensor:
    """[context, taps * hidden] -> [context, hidden]."""
    forward = modules.forward
    if forward.tap_norms:
        taps = features.unflatten(-1, (forward.taps, forward.hidden_size)).unbind(-2)
        normed = [modules.plain_norm(f"aux_hidden_norms.{tap}", part) for tap, part in enumerate(taps)]
        features = torch.cat(normed, dim=-1)
    return modules.norm("hidden_norm", modules.linear("fc", features))
