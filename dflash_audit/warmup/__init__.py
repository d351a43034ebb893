"""The warm-up: the draft, filled as the load plan says and poisoned elsewhere, run forward in a child.

`options`, `job`, `events` and `result` are what user, parent and child tell one
another; they import no torch. `isolation` is the parent's side (`ending` says of
what a child died), `child` the other, which runs `forward_pass`:
`weights` fills and unpacks the parameters (`memory`, `unpack`), `reference` is
the draft's arithmetic, `watch` looks at what comes out of every module.
"""
