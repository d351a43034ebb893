"""The real draft, poisoned, loaded and laid out for its kernels."""

import torch
from sglang.srt.configs.load_config import LoadConfig
from sglang.srt.model_loader.loader import DefaultModelLoader

from dflash_audit.engines.sglang_installed.child.draft import Draft, serve_one_rank
from dflash_audit.warmup.sglang_live.live_draft import LiveDraft
from dflash_audit.warmup.sglang_live.poison import poison_parameters


def built(live: LiveDraft, device: torch.device) -> Draft:
    """Built on `device` with poison in its parameters."""
    serve_one_rank(
        live.attention_backend,
        device=device.type,
        attention_backend="triton",
        speculative_algorithm="DFLASH",
        speculative_num_draft_tokens=live.rows,
        speculative_eagle_topk=1,
        speculative_num_steps=live.rows - 1,
    )
    if device.type == "cpu":
        from dflash_audit.warmup.sglang_live.cpu import stand_in

        stand_in()
    draft = Draft(live.folder, live.quantization)
    draft.settle()
    draft.build(str(device))
    poison_parameters(draft.model, draft.act_order)
    return draft


def loaded(draft: Draft, device: torch.device) -> None:
    """Loaded by its own `load_weights`, then laid out as each quantization method wants it."""
    with torch.no_grad():
        draft.model.load_weights(draft.weights())
        # Its `load_weights_only` does no more for a draft, and asks a GPU for its memory.
        DefaultModelLoader(LoadConfig()).postprocess_weights(draft.model, device)
    draft.model.eval()
