"""What rules that are about vLLM ask of a run."""


def is_vllm(engine: str) -> bool:
    """Whether the engine is a release of vLLM, or vLLM as it is installed."""
    return engine.startswith(("vllm-", "vllm@"))
