"""A draft through its stages: what is noted of a load, whatever the class does with the tensors."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest

from dflash_audit.engines.installed.child.attempt import OtherFamily, attempt
from dflash_audit.engines.installed.child.built import Role, attributes, modules
from dflash_audit.engines.installed.child.watch import Watch


class Tensor:
    """As much of one as is looked at; `at` is its address."""

    dtype = "torch.bfloat16"

    def __init__(self, size: int, at: int) -> None:
        self.shape, self.nbytes, self.at, self.data = (size,), 2 * size, at, self

    def data_ptr(self) -> int:
        return self.at

    def new_empty(self, size: int) -> "Tensor":
        return Tensor(size, 0)

    def tail(self) -> "Tensor":
        return Tensor(self.shape[0] - 1, self.at + 2)


Weights = Iterable[tuple[str, Tensor]]


def copy(parameter: Tensor, tensor: Tensor, *shard: Any) -> None:
    del shard
    if parameter.shape != tensor.shape:
        raise ValueError(f"holds {parameter.shape}, got {tensor.shape}")


class Model:
    """Two parameters, and a load that a test gives it."""

    def __init__(self, load: Callable[["Model", Weights], None]) -> None:
        self.parameters: dict[str, Any] = {"a": Tensor(4, 1000), "b": Tensor(4, 2000)}
        self._load = load

    def named_modules(self) -> Iterator[tuple[str, "Model"]]:
        yield "", self

    def named_parameters(self, recurse: bool = True) -> Iterator[tuple[str, Tensor]]:
        del recurse
        yield from self.parameters.items()

    def load_weights(self, weights: Weights) -> None:
        self._load(self, weights)

    def put(self, name: str, tensor: Tensor, *shard: Any) -> None:
        if name not in self.parameters:
            raise KeyError(name)
        parameter = self.parameters[name]
        parameter.weight_loader(parameter, tensor, *shard)


def one_by_one(model: Model, weights: Weights) -> None:
    for name, tensor in weights:
        model.put(name, tensor)


def all_at_once(model: Model, weights: Weights) -> None:
    one_by_one(model, [*weights])


class Toy:
    """A draft of two tensors and more."""

    def __init__(self, load: Callable[[Model, Weights], None], names: str, anew: bool = False) -> None:
        self.stage, self.loads_anew, self.names = "config", anew, names
        self.quantization, self.config, self.act_order = None, {"hidden_size": 4}, False
        self.model_class: Any = None
        self.model: Any = None
        self.load = load

    def settle(self) -> None:
        self.model_class = Model

    def build(self) -> None:
        self.stage = "build"
        self.model = Model(self.load)

    def modules(self) -> Iterator[dict[str, Any]]:
        return modules(self.model, lambda module: Role())

    def weights(self) -> Iterator[tuple[str, Tensor]]:
        """An upper-case name is that of a tensor which is too long for its parameter."""
        for place, name in enumerate(self.names.split()):
            yield name.lower(), Tensor(5 if name.isupper() else 4, 100 * place)


def recorded(toy: Toy) -> dict[str, Any]:
    return attempt(toy, Watch(copy))


def told(record: dict[str, Any]) -> tuple[list[str], list[str | None], bool]:
    """The parameters that were filled, the tensors that were refused, and whether that is all."""
    filled = [f"{record['reads'][place][0]}>{name}" for place, name, _, _ in record["fills"]]
    return filled, [tensor for _, tensor in record["refusals"]], record["complete"]


@pytest.mark.parametrize(
    ("load", "anew", "names", "expected"),
    [
        (one_by_one, False, "a b", (["a>a", "b>b"], [], True)),
        (all_at_once, True, "a b", (["a>a", "b>b"], [], True)),
        # What is refused is left behind, or left out.
        (one_by_one, False, "A x b", (["b>b"], ["a", "x"], True)),
        (one_by_one, True, "A x b", (["b>b"], ["a", "x"], True)),
        # Whoever has all in hand stops at the first, or is told of each in turn.
        (all_at_once, False, "a B", (["a>a"], ["b"], False)),
        (all_at_once, True, "a B A b", (["a>a", "b>b"], ["b", "a"], True)),
    ],
)
def test_a_load_goes_on_after_a_refusal(
    load: Callable[[Model, Weights], None], anew: bool, names: str, expected: Any
) -> None:
    record = recorded(Toy(load, names, anew))
    assert told(record) == expected
    assert (record["stage"], record["at_tensor"]) == (
        ("load", expected[1][0]) if expected[1] else (None, None)
    )


def test_a_draft_holds_no_memory_once_it_is_recorded() -> None:
    toy = Toy(one_by_one, "a X b")
    record = recorded(toy)
    assert [parameter["shape"] for parameter in record["modules"][0]["parameters"]] == [[4], [4]]
    assert [parameter.data.shape for parameter in toy.model.parameters.values()] == [(0,), (0,)]


def test_a_check_at_the_end_is_told_alone() -> None:
    def checked(model: Model, weights: Weights) -> None:
        all_at_once(model, weights)
        raise ValueError("something is missing")

    record = recorded(Toy(checked, "a", anew=True))
    assert (record["error"], record["at_tensor"], record["complete"]) == (
        "ValueError: something is missing",
        None,
        False,
    )
    assert told(recorded(Toy(checked, "A b", anew=True))) == (["b>b"], ["a"], True)


def test_a_class_that_refuses_before_it_reads_is_asked_once() -> None:
    asked = []

    def never(model: Model, weights: Weights) -> None:
        asked.append(model)
        raise ValueError("no")

    for anew in (False, True):
        assert told(recorded(Toy(never, "a b", anew))) == ([], [None], False)
    assert len(asked) == 2


def test_a_file_that_cannot_be_read_ends_the_load() -> None:
    class Broken(Toy):
        def weights(self) -> Iterator[tuple[str, Tensor]]:
            yield "a", Tensor(4, 0)
            raise OSError("the file ends early")

    record = recorded(Broken(one_by_one, "", anew=True))
    assert told(record) == (["a>a"], ["a"], False)
    assert record["error"] == "OSError: the file ends early"


def test_a_part_is_of_its_tensor_and_what_is_none_fills_nothing() -> None:
    def in_parts(model: Model, weights: Weights) -> None:
        held = dict(weights)
        model.parameters["b"].shape = (3,)
        model.put("b", held["a"].tail())
        model.put("a", Tensor(4, 5000))

    assert told(recorded(Toy(in_parts, "a b"))) == (["a>b"], [], True)


def test_a_loader_that_calls_another_fills_once() -> None:
    def sharded(model: Model, weights: Weights) -> None:
        inner = model.parameters["b"].weight_loader
        outer = watch.loader("b", lambda parameter, tensor, shard: inner(parameter, tensor))
        for _, tensor in weights:
            outer(model.parameters["b"], tensor, "k")

    watch = Watch(copy)
    assert attempt(Toy(sharded, "q"), watch)["fills"] == [(0, "b", "k", "bfloat16")]


def test_what_passes_by_is_in_hand() -> None:
    """A class that hands on what it read before, and refuses one that comes near no parameter."""
    watch = Watch(copy)

    def hand_on(model: Model, weights: Weights) -> None:
        for name, tensor in watch.passing([*weights]):
            if name == "x":
                raise ValueError("no place")
            model.put(name, tensor)

    assert told(attempt(Toy(hand_on, "a x b", anew=True), watch)) == (["a>a", "b>b"], ["x"], True)


def test_a_step_of_the_classes_own_fills_by_name() -> None:
    """It puts what it made of a tensor into the parameter, or refuses it."""
    watch = Watch(copy)

    def put(model: Model, raw: Tensor) -> None:
        copy(model.parameters["b"], raw)

    def own_step(model: Model, weights: Weights) -> None:
        held = dict(weights)
        model.put("a", held.pop("a"))
        if "raw" in held:
            watch.step("raw", "b", put)(model, Tensor(*held["raw"].shape, 9000))

    assert told(attempt(Toy(own_step, "raw a", anew=True), watch)) == (["a>a", "raw>b"], [], True)
    watch = Watch(copy)
    assert told(attempt(Toy(own_step, "RAW a", anew=True), watch)) == (["a>a"], ["raw"], True)


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        RuntimeError(
            "[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes."
        ),
    ],
)
@pytest.mark.parametrize("at", ["build", "load_weights"])
def test_what_the_machine_lacks_is_no_fault_of_the_draft(at: str, error: Exception) -> None:
    def fail(*_: Any) -> None:
        raise error

    toy = Toy(fail if at == "load_weights" else one_by_one, "a")
    if at == "build":
        toy.build = fail  # type: ignore[method-assign]
    with pytest.raises(MemoryError, match="too little memory"):
        recorded(toy)


def test_another_family_is_no_refusal() -> None:
    class Other(Toy):
        def settle(self) -> None:
            raise OtherFamily("it is no draft")

    record = recorded(Other(one_by_one, "a"))
    assert (record["skipped"], record["stage"], record["modules"]) == ("it is no draft", None, None)


def test_an_error_without_words_says_where_and_a_long_one_ends() -> None:
    class Silent(Toy):
        def build(self) -> None:
            self.stage = "build"
            raise AssertionError

    class Loud(Toy):
        def settle(self) -> None:
            raise ValueError("\x1b[31m::error::\n" * 1000)

    said = recorded(Silent(one_by_one, "a"))["error"]
    assert said.startswith("AssertionError at test_attempt.py:") and said.endswith("raise AssertionError")
    loud = recorded(Loud(one_by_one, "a"))
    assert loud["stage"] == "config" and len(loud["error"]) < 700 and "\n" not in loud["error"]


def test_a_config_is_json_with_its_parts() -> None:
    class Dtype:
        __slots__ = ()

        def __str__(self) -> str:
            return "torch.bfloat16"

    class Config:
        def __init__(self) -> None:
            self.dtype, self.ids, self.inner = Dtype(), (1, 2), {3: None}

    assert attributes(Config()) == {"dtype": "bfloat16", "ids": [1, 2], "inner": {"3": None}}
