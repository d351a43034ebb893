"""The draft as the installed SGLang itself runs it: its classes, its load, its kernels, one minimal batch.

`entry` is the way in and imports nothing of SGLang before the `platform` is set.
`poison` and `draft` build and load, `pools` and `batch` stand for the server's
model runner, `attention` and `cpu` for the kernels that a CPU lacks, `forward`
runs it under a watch, `heads` proposes. Replaced on a GPU is nothing but the model runner.
"""
