"""vLLM itself as an engine: what of `engines.installed` is its own.

`engine` is the engine, `quantization` reads its quantization config as the profile does,
`own_values` lists what needs no filling. `child` is the other side; only it imports vllm.
"""
