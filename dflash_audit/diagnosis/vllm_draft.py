"""What rules that are about vLLM ask of a run."""

from dflash_audit.engine_run import EngineRun


def is_vllm(run: EngineRun) -> bool:
    """Whether the engine is a release of vLLM, or vLLM as it is installed."""
    return run.engine.startswith(("vllm-", "vllm@"))
