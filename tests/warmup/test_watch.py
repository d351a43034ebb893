"""What the watch notes of a forward pass, and which of its stages are outputs."""

import pytest

from dflash_audit.warmup.result import Stage

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.warmup

from dflash_audit.warmup.reached import reached_outputs  # noqa: E402
from dflash_audit.warmup.watch import Watch  # noqa: E402

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("shown", "nonfinite", "largest"),
    [
        ([], 0.0, None),
        ([[]], 0.0, None),
        ([[1.0, -3.0]], 0.0, 3.0),
        ([[NAN, 2.0, -INF, 1.0]], 0.5, 2.0),
        ([[NAN]], 1.0, None),
        ([[NAN], [4.0], [5.0, 1.0]], 0.25, 5.0),
        ([[3e38, 1.0]], 0.0, pytest.approx(3e38)),
    ],
)
def test_a_stage_is_the_numbers_that_it_showed(
    shown: list[list[float]], nonfinite: float, largest: float | None
) -> None:
    told: list[str] = []
    watch = Watch(told.append)
    with watch.stage("first"):
        assert told == ["first"]
        for numbers in shown:
            output = torch.tensor(numbers)
            assert watch.out(output) is output
    (stage,) = watch.stages
    assert (stage.name, stage.nonfinite, stage.largest) == ("first", nonfinite, largest)
    assert stage.finite == (nonfinite == 0)
    assert stage.seconds >= 0


def test_a_stage_counts_nothing_of_the_one_before() -> None:
    watch = Watch()
    for name, number in (("first", NAN), ("second", 2.0)):
        with watch.stage(name):
            watch.out(torch.tensor([number]))
    assert [(stage.name, stage.nonfinite, stage.largest) for stage in watch.stages] == [
        ("first", 1.0, None),
        ("second", 0.0, 2.0),
    ]


def test_ids_are_no_poison() -> None:
    watch = Watch(mend=True)
    ids = torch.tensor([1, 2])
    assert watch.module("table", ids) is ids
    assert watch.sources == {}


def test_a_module_goes_on_as_it_is_without_mending() -> None:
    watch = Watch()
    output = torch.tensor([NAN, 1.0])
    assert watch.module("fc", output) is output
    assert watch.sources == {}


def test_mended_each_source_is_seen_where_it_was_first() -> None:
    watch = Watch(mend=True)
    with watch.stage("context"):
        mended = watch.module("fc", torch.tensor([NAN, 1.0, INF]))
        assert mended.tolist() == [0.0, 1.0, 0.0]
        fine = torch.tensor([1.0])
        assert watch.module("norm", fine) is fine
    with watch.stage("layer 0"):
        watch.module("fc", torch.tensor([NAN]))
        watch.module("qkv_proj", torch.tensor([-INF]))
    assert watch.sources == {"fc": "context", "qkv_proj": "layer 0"}


@pytest.mark.parametrize(("keep", "kept"), [(False, {}), (True, {"first": [2.0], "second": [3.0]})])
def test_the_last_output_of_a_stage_is_kept_if_it_is_asked_for(
    keep: bool, kept: dict[str, list[float]]
) -> None:
    watch = Watch(keep=keep)
    for stage, numbers in (("first", (1.0, 2.0)), ("second", (3.0,))):
        with watch.stage(stage):
            for number in numbers:
                watch.out(torch.tensor([number]))
    assert {stage: output.tolist() for stage, output in watch.kept.items()} == kept


@pytest.mark.parametrize(
    ("broken", "reached"),
    [
        ([], ()),
        (["context", "layer 0"], ()),
        (["norm"], ("norm",)),
        (["layer 0", "norm", "candidates", "selector"], ("norm", "candidates", "selector")),
        (["selector"], ("selector",)),
    ],
)
def test_outputs_are_the_last_hidden_states_and_what_follows(
    broken: list[str], reached: tuple[str, ...]
) -> None:
    stages = [
        Stage(name, 0.0, 0.1 if name in broken else 0.0)
        for name in ("context", "layer 0", "norm", "candidates", "selector")
    ]
    assert reached_outputs(stages) == reached


def test_a_pass_that_did_not_come_to_its_end_reached_no_output() -> None:
    assert reached_outputs([Stage("context", 0.0, 1.0)]) == ()
