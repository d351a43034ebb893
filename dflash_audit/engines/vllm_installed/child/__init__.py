"""The child of `vllm@installed`: imports vLLM, and records what it does with a draft.

`platform` puts a card and process groups where there are none, `target` makes the model
that the draft is served beside, `draft` takes the draft through its stages and `stages`
tells at which of them vLLM raised.
"""
