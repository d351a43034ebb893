"""The config of the heads that some drafts carry: LiLiCorr's and DSpark's.

Source: SGLang 0.5.23 `srt/speculative/lilicorr_utils.py` and
`srt/speculative/dspark_components/dspark_config.py`.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from dflash_audit.engines.sglang.conversions import Config, integer, optional_integer, real
from dflash_audit.engines.sglang.dflash_config import nested, text_config
from dflash_audit.refusal import Refused

MAX_CANDIDATE_TOPK: Final = 16
"""Source: SGLang 0.5.23 `kernels/ops/speculative/lilicorr.py`."""

MARKOV_HEADS: Final = ("vanilla", "gated", "rnn")


class LiLiCorr(NamedTuple):
    """Sizes of a LiLiCorr head; `hidden_size` 0 means the draft's own."""

    candidate_topk: int
    hidden_size: int
    num_layers: int
    num_heads: int
    mlp_ratio: float
    factor_dim: int
    vector_eps: float
    logit_scale: float


class DSpark(NamedTuple):
    """A DSpark draft as its server runs it.

    `block_size` are the tokens that it proposes, None where the config does not
    say; with `sample_from_anchor` the anchor's row proposes the first of them.
    """

    markov_rank: int
    block_size: int | None
    mask_token_id: int | None
    sample_from_anchor: bool


def lilicorr(config: Config) -> LiLiCorr:
    """Parse the `lilicorr_*` fields (`parse_lilicorr_draft_config`).

    Raises:
        Refused: a field is missing or out of range; none has a default.
    """
    inner = nested(config)
    enabled = inner.get("lilicorr_enabled")
    if not any(key.startswith("lilicorr_") for key in inner) or (enabled is not None and not enabled):
        raise Refused("a LiLiCorr draft needs the lilicorr_* fields in dflash_config")

    topk = _positive_integer(inner, "candidate_topk")
    if topk & (topk - 1):
        raise Refused(f"lilicorr_candidate_topk must be a power of two, got {topk}")
    if topk > MAX_CANDIDATE_TOPK:
        raise Refused(f"lilicorr_candidate_topk must be at most {MAX_CANDIDATE_TOPK}, got {topk}")
    return LiLiCorr(
        candidate_topk=topk,
        hidden_size=integer(_field(inner, "hidden_size"), "lilicorr_hidden_size"),
        num_layers=_positive_integer(inner, "num_layers"),
        num_heads=_positive_integer(inner, "num_heads"),
        mlp_ratio=_positive_real(inner, "mlp_ratio"),
        factor_dim=_positive_integer(inner, "factor_dim"),
        vector_eps=_positive_real(inner, "vector_eps"),
        logit_scale=_positive_real(inner, "logit_scale"),
    )


def _positive_integer(inner: Config, key: str) -> int:
    value = integer(_field(inner, key), f"lilicorr_{key}")
    if value <= 0:
        raise Refused(f"lilicorr_{key} must be positive, got {value}")
    return value


def _positive_real(inner: Config, key: str) -> float:
    value = real(_field(inner, key), f"lilicorr_{key}")
    if value <= 0:
        raise Refused(f"lilicorr_{key} must be positive, got {value}")
    return value


def _field(inner: Config, key: str) -> Any:
    if f"lilicorr_{key}" not in inner:
        raise Refused(f"dflash_config.lilicorr_{key} is required and missing")
    return inner[f"lilicorr_{key}"]


def dspark(config: Config, in_dflash_config: bool = True) -> DSpark:
    """Parse and validate the DSpark fields (`parse_dspark_draft_config`, `get_dspark_sample_from_anchor`).

    With `in_dflash_config` they may stand in `dflash_config` too.

    Raises:
        Refused: no Markov rank, an unknown head type, or a malformed field.
    """
    fields = Fields(config, in_dflash_config)
    rank = _markov_rank(fields)
    if rank < 0:
        raise Refused(f"markov_rank must not be negative, got {rank}")
    _check_head_type(fields, rank)
    mask = fields.get("mask_token_id", "dspark_noise_token_id")
    if mask is not None:
        mask = integer(mask, "mask_token_id")
        if mask < 0:
            raise Refused(f"mask_token_id must not be negative, got {mask}")
    ids = config.get("dspark_target_layer_ids")
    if ids is not None:
        if not isinstance(ids, list) or not ids:
            raise Refused(f"dspark_target_layer_ids must be a list that is not empty, got {ids!r}")
        for layer in ids:
            integer(layer, "dspark_target_layer_ids")
    block_size = _dspark_block_size(config)
    if rank == 0:
        raise Refused("a DSpark draft needs a markov_rank above 0, got 0")
    return DSpark(rank, block_size, mask, bool(config.get("sample_from_anchor", True)))


def _dspark_block_size(config: Config) -> int | None:
    if config.get("dspark_block_size") is not None:
        return integer(config["dspark_block_size"], "dspark_block_size")
    return optional_integer(nested(config).get("block_size", config.get("block_size")), "block_size", 1)


def _markov_rank(fields: "Fields") -> int:
    raw = fields.get("markov_rank", "dspark_markov_rank", default=0)
    return 0 if raw is None else integer(raw, "markov_rank")


def _check_head_type(fields: "Fields", rank: int) -> None:
    config = fields.config
    kind = fields.get("markov_head_type", "dspark_markov_head_type")
    prefixed = ("block_size", "markov_rank", "noise_token_id", "target_layer_ids")
    if kind is None:
        if rank > 0 and all(config.get(f"dspark_{key}") is None for key in prefixed):
            raise Refused("a DSpark draft needs markov_head_type")
        return
    if str(kind).lower() not in MARKOV_HEADS:
        raise Refused(f"markov_head_type must be one of {', '.join(MARKOV_HEADS)}, got {kind!r}")


class Fields(NamedTuple):
    """The fields of a DSpark draft, in all the places where they may stand."""

    config: Config
    in_dflash_config: bool

    def get(self, key: str, prefixed: str, default: Any = None) -> Any:
        """A field by precedence: the prefixed one, the nested configs, the text config, the config."""
        if self.config.get(prefixed) is not None:
            return self.config[prefixed]
        own = self.config.get("dspark_config")
        shared = nested(self.config) if self.in_dflash_config else {}
        inner = {**shared, **(own if isinstance(own, Mapping) else {})}
        return inner.get(key, text_config(self.config).get(key, self.config.get(key, default)))
