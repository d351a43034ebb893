"""vLLM, replayed stage by stage on one checkpoint."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from dflash_audit.engine_run import Conditions, EngineRun
from dflash_audit.engines.vllm import architectures, serving, speculators
from dflash_audit.engines.vllm.architectures import BEAM, GEMMA4, LAGUNA, LILICORR
from dflash_audit.engines.vllm.draft import SHAPES, Draft, build
from dflash_audit.engines.vllm.fields import truthy
from dflash_audit.engines.vllm.load_weights import Drafted, load
from dflash_audit.engines.vllm.quantization.config import QuantConfig, Surroundings
from dflash_audit.engines.vllm.quantization.settle import Settled, read_config, settle
from dflash_audit.engines.vllm.rope import check_context
from dflash_audit.engines.vllm.target import target_facts
from dflash_audit.engines.vllm.unserved import no_forward, unknown_class, unserved
from dflash_audit.engines.vllm.weight_files import loaded_tensors
from dflash_audit.hf_config import decoder_part
from dflash_audit.hf_config.config_object import Attributes
from dflash_audit.hf_config.layer_types import GEMMA4_TYPE, heads_vary
from dflash_audit.hf_config.read import as_base_class_sees, as_transformers_sees
from dflash_audit.hf_config.replay import replayed
from dflash_audit.refusal import NotModelled, Refusal, Refused, Stage
from dflash_audit.sources.checkpoint import Checkpoint
from dflash_audit.tree import Tree

if TYPE_CHECKING:
    from dflash_audit.forward import Forward

MOST_SLOTS: Final = 16_384
"""Tokens that a server schedules at a time on the largest cards, of which a block must leave some.

Source: vLLM 0.33.0 `engine/arg_utils.py`, `get_batch_defaults`; `config/vllm.py`,
`_set_max_num_scheduled_tokens`.
"""


class VLLM(NamedTuple):
    """An engine of the audit: vLLM 0.33.0."""

    name: str

    def replay(self, checkpoint: Checkpoint, conditions: Conditions) -> EngineRun:
        """What this version does with `checkpoint`, up to where it stops."""
        progress = _Progress(EngineRun(self.name))
        try:
            _stages(progress, checkpoint, conditions)
        except Refused as refused:
            run = progress.run
            run.refusal = Refusal(progress.stage, refused.reason, pattern=refused.pattern)
            if progress.stage == "class":
                run.unserved, run.served_by = unknown_class(checkpoint.config) or (None, None)
        except NotModelled as unknown:
            progress.run.skipped = unknown.reason
        return progress.run

    def forward(self, run: EngineRun) -> "Forward":
        """What the draft of `run` computes; see `Engine`."""
        no_forward(run)


class _Progress:
    """What the stages have shown so far, and the one that is on."""

    def __init__(self, run: EngineRun) -> None:
        self.run = run
        self.stage: Stage = "config"


class _Ready(NamedTuple):
    """What is known of a draft once its class is: the draft, its class, and what quantizes it."""

    draft: Draft
    model_class: str
    quant: QuantConfig | None
    own_head: QuantConfig | None
    conditions: Conditions


def _stages(progress: _Progress, checkpoint: Checkpoint, conditions: Conditions) -> None:
    run, raw = progress.run, checkpoint.config
    config = run.config = _settled(_read(raw))
    with replayed("vLLM cannot use the config"):
        tokens = serving.tokens(raw)
    if tokens >= MOST_SLOTS - 1:
        raise Refused(f"block_size is more than the {MOST_SLOTS:,} tokens of a step")
    settled = settle(config, checkpoint.json_files.get("hf_quant_config.json"))
    progress.stage = "class"
    named = architectures.names(config)
    served = serving.method(raw, named)
    names = _rewritten(raw, config, served)
    run.model_class = architectures.model_class(names, frozenset(named))
    lacking = unserved(config, run.model_class)
    if lacking is not None:
        run.unserved, run.served_by = lacking
    run.quantization = settled.method
    progress.stage = "quant_config"
    ready = _ready(run.model_class, config, tokens, settled, checkpoint, conditions)
    run.quant_config = ready.quant
    run.assumed = ready.draft.target.assumed
    progress.stage = "build"
    run.tree = _build(ready, conditions.tp)
    run.serve = serving.serve_command(served, ready.draft.tokens, checkpoint.origin, conditions)
    progress.stage = "load"
    whole = run.tree if conditions.tp == 1 else _build(ready, 1)
    draft = ready.draft
    drafted = Drafted(
        run.model_class,
        None if ready.quant is None else settled.method,
        int(config["vocab_size"]),
        int(config["vocab_size"]) if run.model_class == BEAM else draft.draft_vocab_size,
        draft.target.vocab_size,
        truthy(config.get("has_own_lm_head", False)),
    )
    run.plan = load(drafted, run.tree, whole, loaded_tensors(checkpoint, run.model_class))
    run.refusal = next(iter(run.plan.refusals), None)


def _read(raw: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes of the config object that the draft's class is given."""
    if speculators.is_speculators(raw):
        rewritten = speculators.rewritten(raw)
        rewritten.pop("model_type", None)
        attributes = as_base_class_sees(rewritten)
        if raw.get("quantization_config") is not None:
            attributes["quantization_config"] = raw["quantization_config"]
        return attributes
    if raw.get("model_type") in architectures.OWN_CONFIGS:
        raise NotModelled(f"vLLM's own config of the model type {raw['model_type']} is not replayed")
    attributes = as_transformers_sees(raw)
    part = decoder_part(attributes)
    if part is not attributes and not (isinstance(part, Attributes) and "num_attention_heads" in part):
        raise Refused("the config's text_config is no config with num_attention_heads")
    return architectures.completed(attributes)


def _settled(attributes: dict[str, Any]) -> dict[str, Any]:
    """The attributes as `ModelConfig` leaves them; refused for a length that it refuses.

    Source: vLLM 0.33.0 `config/model.py`, `ModelConfig.__post_init__`.
    """
    check_context(attributes)
    if attributes.get("sliding_window") == 0:
        if attributes.get("model_type") == GEMMA4_TYPE:
            raise Refused("sliding_window is 0, of which vLLM makes null, and a Gemma 4 config takes none")
        attributes["sliding_window"] = None
    return attributes


def _rewritten(raw: Mapping[str, Any], config: Mapping[str, Any], served: str) -> list[str]:
    """The names that the registry is asked for."""
    named = architectures.names(config)
    if served == "dspark":
        return architectures.as_dspark(named, config.get("model_type"))
    return named if speculators.is_speculators(raw) else architectures.as_dflash(named)


def _ready(
    model_class: str,
    config: Mapping[str, Any],
    tokens: int,
    settled: Settled,
    checkpoint: Checkpoint,
    conditions: Conditions,
) -> _Ready:
    with replayed("vLLM cannot use the config"):
        draft = Draft(config, target_facts(checkpoint.config, conditions), tokens)
        surroundings = surroundings_of(draft, model_class, checkpoint, conditions)
        files = checkpoint.json_files
        quant = None
        if model_class != BEAM:
            quant = read_config(settled, surroundings, files)
        own = quant
        if quant is not None and truthy(config.get("has_own_lm_head", False)):
            own = read_config(settled, surroundings._replace(shifted=False), files)
        return _Ready(draft, model_class, quant, own, conditions)


def surroundings_of(
    draft: Draft, model_class: str, checkpoint: Checkpoint, conditions: Conditions
) -> Surroundings:
    """What a quantization method may read beside its own config."""
    return Surroundings(
        draft.target.layers,
        draft.num_layers,
        model_class not in (LAGUNA, GEMMA4),
        conditions.capability,
        max(1, int(draft.config.get("num_key_value_heads") or 1) // conditions.tp),
        checkpoint.tensors,
    )


def _build(ready: _Ready, tp: int) -> Tree:
    draft, quant, own = ready.draft, ready.quant, ready.own_head
    card = ready.conditions.capability
    with replayed("vLLM cannot build the draft"):
        # Each family is imported when it is asked for.
        if ready.model_class == LAGUNA:
            from dflash_audit.engines.vllm.laguna import build as build_laguna

            return build_laguna(ready.model_class, draft, quant, tp, card)
        if ready.model_class == GEMMA4:
            from dflash_audit.engines.vllm import gemma4

            gemma4.check_heads(draft, ready.conditions.tp)
            return gemma4.build(draft, quant, tp, card)
        if heads_vary(draft.config):
            raise Refused("head_dim varies from layer to layer, and this class asks for one")
        if ready.model_class == LILICORR:
            from dflash_audit.engines.vllm import lilicorr

            tree = build(ready.model_class, lilicorr.SHAPE, draft, quant, own, tp, card)
            lilicorr.check_vocabulary(draft)
            return tree
        return build(ready.model_class, SHAPES[ready.model_class], draft, quant, own, tp, card)


RELEASE: Final = VLLM("vllm-0.33.0")
