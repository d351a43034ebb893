"""The forward pass of a draft, as SGLang reads it from the config.

Source: SGLang 0.5.23 `srt/models/dflash.py`, `dspark.py`, `lilicorr.py`; the
workers in `srt/speculative/dflash_worker_v2.py`, `domino_utils.py`,
`dspark_components/dspark_draft.py`.
"""

from typing import Final

from dflash_audit.engines.sglang import dflash_config, head_config
from dflash_audit.engines.sglang.conversions import Config, integer, optional_integer, real, required
from dflash_audit.engines.sglang.dflash_config import DFlashConfig
from dflash_audit.engines.sglang.draft import CLASSES, DraftClass, gate, head_dimension
from dflash_audit.engines.sglang.rope import read_rope
from dflash_audit.engines.sglang.rope_frequencies import rope_of
from dflash_audit.forward import (
    Attention,
    Convolution,
    Domino,
    Forward,
    Head,
    Layer,
    LiLiCorr,
    Markov,
    Selector,
    Swiglu,
)
from dflash_audit.refusal import NotModelled

DOMINO_POOL: Final = 2048
"""Source: SGLang 0.5.23 `srt/arg_groups/fields/spec.py`, `speculative_domino_candidate_pool_size`."""

DSPARK_BLOCK: Final = 7
"""Source: SGLang 0.5.23 `dspark_config.py`, `DEFAULT_DSPARK_GAMMA`."""


def forward_of(config: Config, draft_class_name: str) -> Forward:
    """The forward pass of a draft that the engine builds.

    Args:
        config: the draft's config as the engine sees it.
        draft_class_name: the engine's class of the draft.

    Raises:
        Refused: a constructor raises.
        NotModelled: the class is none that is replayed.
    """
    if draft_class_name not in CLASSES:
        raise NotModelled(f"the forward pass of {draft_class_name} is not replayed")
    drafted = CLASSES[draft_class_name]
    parsed = dflash_config.parse(config)
    nemotron = dflash_config.is_nemotron_35(config)
    layers = integer(required(config, "num_hidden_layers"), "num_hidden_layers")
    rows, first_slot, mask = _block(drafted, config, parsed)
    return Forward(
        hidden_size=integer(required(config, "hidden_size"), "hidden_size"),
        taps=len(dflash_config.taps(parsed, layers)),
        eps=real(config.get("rms_norm_eps", 1e-6), "rms_norm_eps"),
        gemma_norms=bool(config.get("use_gemma_norm", False)),
        attention=_attention(drafted, config, parsed, nemotron),
        layers=tuple(_layer(config, layer) for layer in range(layers)),
        rows=rows,
        first_slot=1 if first_slot else 0,
        swiglu=_swiglu(config),
        convolution=_convolution(parsed),
        tap_norms=drafted.laguna,
        context_norm=drafted.laguna,
        own_embedding=nemotron,
        mask_token_id=mask,
        vocab_size=optional_integer(config.get("vocab_size"), "vocab_size", 0),
        head=_head(drafted, config, parsed),
    )


def _block(drafted: DraftClass, config: Config, parsed: DFlashConfig) -> tuple[int, int, int | None]:
    """Rows of a block, the first that proposes a token, and the mask's id.

    A DFlash block holds the anchor, which proposes nothing. A DSpark block's
    size counts the proposals; the anchor's row makes the first of them unless
    the draft says otherwise, and then there is a row more.
    """
    if not drafted.dspark:
        return parsed.block_size, 1, parsed.mask_token_id
    dspark = head_config.dspark(config)
    proposals = DSPARK_BLOCK if dspark.block_size is None else dspark.block_size
    first_slot = 0 if dspark.sample_from_anchor else 1
    return proposals + first_slot, first_slot, dspark.mask_token_id


def _attention(drafted: DraftClass, config: Config, parsed: DFlashConfig, nemotron: bool) -> Attention:
    hidden = integer(required(config, "hidden_size"), "hidden_size")
    heads = integer(required(config, "num_attention_heads"), "num_attention_heads")
    head_dim = head_dimension(config, hidden, heads)
    sinks = parsed.attention_sink_bias or (nemotron and bool(config.get("attention_sink_bias", False)))
    return Attention(
        heads=heads,
        kv_heads=integer(config.get("num_key_value_heads", heads), "num_key_value_heads"),
        head_dim=head_dim,
        rope=rope_of(read_rope(config, head_dim), head_dim),
        value_scale=parsed.attention_value_scale,
        sinks=sinks,
        gate=gate(config) if drafted.laguna else None,
    )


def _layer(config: Config, layer: int) -> Layer:
    seen = dflash_config.attention_type(config, layer)
    return Layer(seen.window, seen.causal)


def _swiglu(config: Config) -> Swiglu | None:
    if config.get("hidden_act", "silu") == "silu":
        return None
    return Swiglu(
        real(required(config, "swiglu_alpha"), "swiglu_alpha"),
        real(required(config, "swiglu_limit"), "swiglu_limit"),
    )


def _convolution(parsed: DFlashConfig) -> Convolution | None:
    if not parsed.conv_kernel_size:
        return None
    return Convolution(parsed.conv_kernel_size, parsed.conv_group_size, parsed.block_size)


def _head(drafted: DraftClass, config: Config, parsed: DFlashConfig) -> Head | None:
    """What proposes the tokens, in the order in which the workers look for it."""
    if drafted.dspark:
        return _markov(config)
    if drafted.selector:
        return Selector(
            parsed.selector_rank,
            parsed.selector_top_k,
            parsed.output_multiplier,
            parsed.final_logit_softcapping,
        )
    if drafted.lilicorr:
        return _lilicorr(config, parsed)
    if parsed.domino:
        domino = parsed.domino
        return Domino(domino.gru_hidden_dim, domino.emb_dim, domino.shift_label, DOMINO_POOL)
    return None


def _markov(config: Config) -> Markov:
    """The head as it is built, from the top of the config alone (`build_markov_head`)."""
    kind = str(config.get("markov_head_type", "vanilla")).lower()
    rank = integer(config.get("markov_rank", 0), "markov_rank")
    if kind == "gated":
        return Markov("gated", rank)
    return Markov("rnn" if kind == "rnn" else "vanilla", rank)


def _lilicorr(config: Config, parsed: DFlashConfig) -> LiLiCorr:
    head = head_config.lilicorr(config)
    return LiLiCorr(
        hidden_size=head.hidden_size or integer(required(config, "hidden_size"), "hidden_size"),
        layers=head.num_layers,
        heads=head.num_heads,
        top_k=head.candidate_topk,
        factor_dim=head.factor_dim,
        vector_eps=head.vector_eps,
        logit_scale=head.logit_scale,
        block_size=parsed.block_size,
    )
