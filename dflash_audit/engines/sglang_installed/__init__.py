"""The installed SGLang itself as an engine: it builds and loads the draft, and its doings become a run.

`engine` is the engine, `installed` finds the version, `process` holds the child that
imports SGLang, `folder` lays a checkpoint out for it, `reading` turns what it
recorded into a run. `child` is the other side; only it imports sglang and torch.
"""
