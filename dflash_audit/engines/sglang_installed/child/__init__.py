"""The child of `sglang@installed`: imports SGLang, and records what it does with a draft."""
