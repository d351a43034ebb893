"""Engines that run themselves: the installed package builds and loads the draft, and its doings become a run.

`packages` says which there are and finds the version, `process` holds the child that
imports one, `folder` lays a checkpoint out for it, `reading` turns what it recorded
into a run, `engine` puts these together. `child` is what the other side of each has in
common; what is one package's own is in `sglang_installed` and `vllm_installed`.
"""
