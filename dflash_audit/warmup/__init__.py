"""The warm-up: the draft, filled as the load plan says and poisoned elsewhere, run forward in a child.

`options`, `job`, `events` and `result` are what user, parent and child tell one
another; they import no torch. `isolation` is the parent's side (`ending` says of
what a child died), `child` the other, which runs `forward_pass`. That picks a
backend: `reference_pass` runs `reference`, the draft's arithmetic, on `weights`
that are filled (`memory`) and unpacked (`unpack`) by the project; `sglang_pass`
runs the installed engine itself (`sglang_live`). `watch` looks at what comes out
of every module, `fidelity` holds one draft against another.
"""
