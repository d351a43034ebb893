"""The warm-up: the draft, filled as the load plan says and poisoned elsewhere, run forward in a child process.

`job` and `result` are what the two processes tell each other and import no torch.
`isolation` is the parent's side, `child` the other, which runs `forward_pass`:
`weights` fills and unpacks the parameters (`memory`, `unpack`), `reference` is
the draft's arithmetic, `watch` looks at what comes out of every module.
"""
