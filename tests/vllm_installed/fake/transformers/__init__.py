"""As much of transformers as the child and the vLLM beside it ask for."""
