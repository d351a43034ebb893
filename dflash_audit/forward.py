"""All numbers that a draft's forward pass needs, the same whatever the engine.

An engine reads its config into a `Forward` (`engines/sglang/forward.py`); the
reference arithmetic of the warm-up computes it, from weights under the names
that the engine's tree gives them.
"""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Frequencies:
    """The angles of a rotary embedding: `inverse` are radians a position, one a rotated pair.

    Cosine and sine are multiplied by `magnitude`.
    """

    inverse: tuple[float, ...]
    magnitude: float = 1.0


@dataclass(frozen=True, slots=True)
class LongFrequencies:
    """Frequencies that take over for all tokens of a pass once a position lies beyond `after`."""

    after: float
    frequencies: Frequencies


@dataclass(frozen=True, slots=True)
class Rope:
    """A rotary embedding of the first `rotary_dim` numbers of a head.

    With `neox` number i turns with number i + rotary_dim / 2, else with its neighbour.
    """

    rotary_dim: int
    neox: bool
    frequencies: Frequencies
    long: LongFrequencies | None = None


@dataclass(frozen=True, slots=True)
class Attention:
    """The attention that all layers share.

    `value_scale` multiplies the values, None where nothing does. With `sinks`
    each head has a sink. `gate` says for what Laguna's gate has a number.
    """

    heads: int
    kv_heads: int
    head_dim: int
    rope: Rope
    value_scale: float | None = None
    sinks: bool = False
    gate: Literal["per-head", "per-element"] | None = None


@dataclass(frozen=True, slots=True)
class Layer:
    """What one layer's attention sees: `window` positions back (None: all), with `causal` none ahead.

    Without `causal` it sees as many positions ahead as back, of its own block.
    """

    window: int | None
    causal: bool


@dataclass(frozen=True, slots=True)
class Swiglu:
    """The activation `swigluoai`; a draft without one has the plain SiLU gate."""

    alpha: float
    limit: float


@dataclass(frozen=True, slots=True)
class Convolution:
    """The grouped dynamic convolutions around attention and MLP: `kernel` taps, `group` channels a number.

    A row sees the rows before it in its run of `block_size` rows, counted through all requests: where
    that is not the number of a block's rows, as in a DSpark draft that does not sample from its anchor,
    a run goes on into the next request.
    """

    kernel: int
    group: int
    block_size: int


@dataclass(frozen=True, slots=True)
class Selector:
    """A candidate selector over the `top_k` of each slot.

    The head's logits are multiplied by `multiplier`, then capped by `softcap`, if there is one.
    """

    rank: int
    top_k: int
    multiplier: float = 1.0
    softcap: float | None = None


@dataclass(frozen=True, slots=True)
class Markov:
    """A Markov head: what the token of the step before adds to a step's logits."""

    kind: Literal["vanilla", "gated", "rnn"]
    rank: int


@dataclass(frozen=True, slots=True)
class Domino:
    """A Domino projector: a GRU over the tokens so far corrects a step's logits.

    Only the `pool` likeliest tokens of the block are corrected; 0 stands for
    all. With `shift_label` a slot is predicted by the row before it.
    """

    gru_hidden_dim: int
    emb_dim: int
    shift_label: bool
    pool: int


@dataclass(frozen=True, slots=True)
class LiLiCorr:
    """A LiLiCorr head over the `top_k` candidates of each slot; `block_size` is the trained one."""

    hidden_size: int
    layers: int
    heads: int
    top_k: int
    factor_dim: int
    vector_eps: float
    logit_scale: float
    block_size: int


Head = Selector | Markov | Domino | LiLiCorr


@dataclass(frozen=True, slots=True)
class Forward:
    """A draft's forward pass.

    `rows` are the anchor and the masks of one block, of which those from
    `first_slot` on propose a token. `taps` features of the target, `hidden_size`
    wide each, make a token of context. With `tap_norms` each has a norm of its
    own, with `context_norm` a layer's input norm is applied to its context too.
    `own_embedding` is a draft that embeds its block itself. `mask_token_id` and
    `vocab_size` are None where the config does not tell. A draft without a
    `head` proposes the likeliest token.
    """

    hidden_size: int
    taps: int
    eps: float
    gemma_norms: bool
    attention: Attention
    layers: tuple[Layer, ...]
    rows: int
    first_slot: Literal[0, 1]
    swiglu: Swiglu | None = None
    convolution: Convolution | None = None
    tap_norms: bool = False
    context_norm: bool = False
    own_embedding: bool = False
    mask_token_id: int | None = None
    vocab_size: int | None = None
    head: Head | None = None

    @property
    def slots(self) -> int:
        """Tokens that one block proposes."""
        return self.rows - self.first_slot
