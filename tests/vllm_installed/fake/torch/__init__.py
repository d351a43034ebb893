"""As much of torch as the child asks for beside vLLM."""

from types import SimpleNamespace

bfloat16 = SimpleNamespace()
cuda = SimpleNamespace()


def device(name: str) -> str:
    return name


def get_default_dtype() -> object:
    return None


def set_default_dtype(dtype: object) -> None:
    del dtype
