"""vLLM, replayed from headers alone."""
