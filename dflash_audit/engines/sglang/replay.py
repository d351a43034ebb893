"""SGLang, replayed stage by stage on one checkpoint."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from dflash_audit.engine_run import Conditions, EngineRun, FlagNeeded
from dflash_audit.engines.sglang.architectures import draft_class
from dflash_audit.engines.sglang.conversions import Config
from dflash_audit.engines.sglang.dflash_config import is_nemotron_35
from dflash_audit.engines.sglang.draft import build
from dflash_audit.engines.sglang.load_weights import load
from dflash_audit.engines.sglang.model_config import derive
from dflash_audit.engines.sglang.profile import NEXT, RELEASE_0_5_19, RELEASE_0_5_23, Profile
from dflash_audit.engines.sglang.serving import serve_command
from dflash_audit.engines.sglang.unserved import unserved
from dflash_audit.hf_config import as_engine_sees, reads_params_json
from dflash_audit.quantization.config import Surroundings
from dflash_audit.quantization.resolve import read_config, settle
from dflash_audit.refusal import NotModelled, Refusal, Refused, Stage
from dflash_audit.sources.checkpoint import Checkpoint

if TYPE_CHECKING:
    from dflash_audit.forward import Forward

SINKS_BACKEND: Final = "trtllm_mha"
SINKS_FLAG: Final = FlagNeeded(
    f"--speculative-draft-attention-backend {SINKS_BACKEND}",
    "the attention sinks of a Nemotron 3.5 draft run on that backend alone",
)
"""Source: SGLang 0.5.23 `srt/models/dflash.py`, `DFlashAttention.__init__`."""


@dataclass(frozen=True, slots=True)
class SGLang:
    """An engine of the audit: SGLang at the version of `profile`."""

    profile: Profile

    @property
    def name(self) -> str:
        return self.profile.name

    def replay(self, checkpoint: Checkpoint, conditions: Conditions) -> EngineRun:
        """What this version does with `checkpoint`, up to where it stops."""
        progress = _Progress(EngineRun(self.name))
        lacking = unserved(self.profile, checkpoint.config)
        if lacking is not None:
            progress.run.unserved, progress.run.served_by = lacking
        try:
            self._stages(progress, checkpoint, conditions)
        except Refused as refused:
            progress.run.refusal = Refusal(progress.stage, refused.reason, pattern=refused.pattern)
        except NotModelled as unknown:
            progress.run.skipped = unknown.reason
        return progress.run

    def forward(self, run: EngineRun) -> "Forward":
        """What the draft of `run` computes; see `Engine`."""
        # Only here: an audit without a warm-up does without.
        from dflash_audit.engines.sglang.forward import forward_of

        assert run.config is not None and run.model_class is not None  # else it stopped before
        return forward_of(run.config, run.model_class)

    def _stages(self, progress: "_Progress", checkpoint: Checkpoint, conditions: Conditions) -> None:
        run = progress.run
        if reads_params_json(checkpoint.id):
            raise NotModelled("by its name the engine reads params.json in place of config.json")
        profile = self.profile
        config = run.config = profile.as_read(
            derive(as_engine_sees(checkpoint.config, profile.older_transformers))
        )
        hf_quant_config = checkpoint.json_files.get("hf_quant_config.json")
        settled = settle(
            config, hf_quant_config, conditions.quantization, conditions.capability, profile.dialect
        )
        run.quantization = settled.method
        progress.stage = "class"
        drafted = draft_class(config, profile.lacks)
        run.model_class = drafted.name
        progress.stage = "quant_config"
        surroundings = Surroundings(
            profile.packed_modules_mapping, conditions.capability, config, profile.dialect
        )
        run.quant_config = read_config(settled, surroundings, checkpoint.json_files)
        progress.stage = "build"
        built = build(drafted, profile, config, run.quant_config, conditions)
        run.flags = _flags(config, conditions)
        run.serve = serve_command(built, checkpoint.origin, run.flags, conditions)
        run.tree = built.tree
        progress.stage = "load"
        alone = replace(conditions, tp=1)
        whole = built if conditions.tp == 1 else build(drafted, profile, config, run.quant_config, alone)
        run.plan = load(built, whole.tree, profile, checkpoint.to_load)
        run.refusal = next(iter(run.plan.refusals), None)


@dataclass(slots=True)
class _Progress:
    """What the stages have shown so far, and the one that is on."""

    run: EngineRun
    stage: Stage = "config"


def _flags(config: Config, conditions: Conditions) -> tuple[FlagNeeded, ...]:
    """The flags that the server lacks; `Refused` where it has the flag with another value."""
    sinks = is_nemotron_35(config) and bool(config.get("attention_sink_bias", False))
    backend = conditions.attention_backend
    if not sinks or backend == SINKS_BACKEND:
        return ()
    if backend is not None:
        raise Refused(f"{SINKS_FLAG.reason}, and the server is given {backend}")
    return (SINKS_FLAG,)


OLDER: Final = SGLang(RELEASE_0_5_19)
RELEASE: Final = SGLang(RELEASE_0_5_23)
FOLLOWING: Final = SGLang(NEXT)
