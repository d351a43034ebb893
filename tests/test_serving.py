"""The command that the report gives after a pass."""

import json
from pathlib import Path

import pytest
from materialize import materialize

from dflash_audit.engine_run import Conditions, FlagNeeded
from dflash_audit.engines.sglang.draft import CLASSES, build
from dflash_audit.engines.sglang.model_config import derive
from dflash_audit.engines.sglang.profile import NEXT
from dflash_audit.engines.sglang.serving import serve_command
from dflash_audit.hf_config import as_engine_sees
from dflash_audit.sources.checkpoint import Origin
from dflash_audit.sources.disk import read_path
from dflash_audit.sources.target_files import TargetFiles
from dflash_audit.target import Target

CASES = Path(__file__).parents[1] / "fixtures" / "cases"
COMMIT = "a" * 40


@pytest.mark.parametrize(
    ("case", "draft", "words"),
    [
        (
            "dense-dflash2",
            Origin("local", "my drafts/one"),
            [
                "--speculative-algorithm DFLASH",
                "--speculative-draft-model-path 'my drafts/one'",
                "--speculative-dflash-block-size 8",
            ],
        ),
        (
            "dense-dspark",
            Origin("hub", "org/name", "main", COMMIT),
            [
                "--speculative-algorithm DSPARK",
                "--speculative-draft-model-path org/name",
                f"--speculative-draft-model-revision {COMMIT}",
            ],
        ),
        (
            "dense-dflash1",
            Origin("hub", "org/target:dflash", None, COMMIT),
            ["--speculative-draft-model-path DRAFT"],
        ),
    ],
)
def test_the_command(case: str, draft: Origin, words: list[str], tmp_path: Path) -> None:
    config = derive(as_engine_sees(read_path(materialize(CASES / case, tmp_path)).config))
    built = build(
        CLASSES[json.loads((CASES / case / "config.json").read_text())["architectures"][0]],
        NEXT,
        config,
        None,
        Conditions(),
    )
    command = serve_command(built, draft, [FlagNeeded("--some-flag", "it is needed")], Conditions(tp=2))
    assert [word for word in words if word not in command] == []
    assert command[-2:] == ("--some-flag", "--tp 2")


@pytest.mark.parametrize(
    ("target", "words"),
    [
        (None, ["--model-path TARGET"]),
        (Origin("local", "my models/one"), ["--model-path 'my models/one'"]),
        (Origin("hub", "org/name", None, COMMIT), ["--model-path org/name", f"--revision {COMMIT}"]),
        (Origin("hub", "org/name:base", None, COMMIT), ["--model-path TARGET"]),
    ],
)
def test_the_command_names_the_target(target: Origin | None, words: list[str], tmp_path: Path) -> None:
    config = derive(as_engine_sees(read_path(materialize(CASES / "dense-dflash1", tmp_path)).config))
    named = None if target is None else Target(TargetFiles(target, {}, None, None, 0))
    conditions = Conditions(target=named)
    built = build(CLASSES["DFlashDraftModel"], NEXT, config, None, conditions)
    command = serve_command(built, Origin("local", "draft"), [], conditions)
    assert command[0].endswith(words[0])
    assert [word for word in command if word.startswith("--revision")] == words[1:]


def test_the_command_has_what_serves_the_draft_and_its_target_together(tmp_path: Path) -> None:
    config = derive(as_engine_sees(read_path(materialize(CASES / "dense-dflash1", tmp_path)).config))
    for said, words in (
        ({"torch_dtype": "bfloat16", "max_position_embeddings": 4096}, []),
        ({"torch_dtype": "float16", "max_position_embeddings": 4096}, ["--dtype bfloat16"]),
        ({"dtype": "bfloat16", "max_position_embeddings": 8192}, ["--context-length 4096"]),
    ):
        conditions = Conditions(target=Target(TargetFiles(Origin("local", "target"), said, None, None, 0)))
        built = build(CLASSES["DFlashDraftModel"], NEXT, config, None, conditions)
        command = serve_command(built, Origin("local", "draft"), [], conditions)
        assert [word for word in command if word.startswith(("--dtype", "--context"))] == words
