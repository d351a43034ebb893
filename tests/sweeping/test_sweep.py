"""The command `sweep` as a process, on folders and on a Hub of the test's own."""

import fcntl
import json
import os
import pty
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hub.drafts import INDEX, sharded, single
from hub.fake_hub import Failure, FakeHub, serve
from materialize import materialize
from report_schema import valid

from dflash_audit.errors import Unreadable
from dflash_audit.sweeping.claim import claim, claimed
from dflash_audit.sweeping.earlier import START

FIXTURES = Path(__file__).parents[2] / "fixtures"
SEED, DENSE = FIXTURES / "seed-w8a16", FIXTURES / "seed-bf16"


@pytest.fixture
def hub() -> Iterator[FakeHub]:
    with serve(FakeHub()) as served:
        yield served


def environment(hub: FakeHub | None, home: Path) -> dict[str, str]:
    return {
        "HF_ENDPOINT": hub.url if hub else "http://127.0.0.1:9",
        "HF_HOME": str(home / "home"),
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "NO_COLOR": "1",
        "COLUMNS": "200",
        "no_proxy": "*",
        "PATH": os.environ["PATH"],
        "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
    }


def sweep(
    hub: FakeHub | None, home: Path, *words: str, given: str | None = None
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "dflash_audit", "sweep", *words]
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        cwd=home,
        env=environment(hub, home),
        input=given,
        check=False,
    )


def reports(lines: str) -> dict[str, dict[str, Any]]:
    """Source's id -> its report, each held against the schema."""
    parsed = [valid(json.loads(line)) for line in lines.splitlines()]
    found = {report["source"]["id"]: report for report in parsed}
    assert len(found) == len(parsed)
    return found


def test_each_line_is_the_report_of_its_audit(hub: FakeHub, tmp_path: Path) -> None:
    hub.repo("org/one", single(tmp_path))
    hub.repo("org/many", sharded(3, tmp_path)).push(sharded(2, tmp_path), "v1")
    done = sweep(hub, tmp_path, "org/one", "org/many@v1", str(SEED), "--tp", "2", "--engine", "all")
    said = reports(done.stdout)
    assert done.returncode == 1  # the seed fails on the release
    for source, id in (("org/one", "org/one"), ("org/many@v1", "org/many"), (str(SEED), str(SEED))):
        words = [sys.executable, "-m", "dflash_audit", source, "--json", "--tp", "2", "--engine", "all"]
        alone = subprocess.run(
            words, capture_output=True, text=True, env=environment(hub, tmp_path), check=False
        )
        assert said[id] == json.loads(alone.stdout)
    assert "3 sources: 2 passed, 1 failed, 0 not read" in done.stderr


@pytest.mark.parametrize(
    ("sources", "options", "code"),
    [
        ([DENSE, SEED], [], 0),
        ([DENSE, SEED], ["--engine", "sglang-0.5.23"], 1),
        ([DENSE, SEED], ["--engine", "sglang-0.5.23", "--fail-on", "never"], 0),
        ([DENSE, SEED], ["--engine", "sglang-0.5.23", "--select", "tap-order"], 0),
        ([SEED], ["--fail-on", "warning"], 1),
        ([SEED], ["--fail-on", "warning", "--ignore", "engines-disagree"], 0),
        ([DENSE, Path("nothing")], [], 3),
        ([SEED, Path("nothing")], ["--engine", "all"], 3),
    ],
)
def test_the_exit_code_is_the_worst(
    sources: list[Path], options: list[str], code: int, tmp_path: Path
) -> None:
    done = sweep(None, tmp_path, *map(str, sources), *options)
    assert done.returncode == code
    assert done.stderr.splitlines()[-1] == f"exit code {code}"
    assert len(reports(done.stdout)) == len(sources)


def test_a_failure_of_one_stops_none(hub: FakeHub, tmp_path: Path) -> None:
    for number in range(6):
        hub.repo(f"org/draft-{number}", single(tmp_path))
    hub.repo("org/gated", single(tmp_path)).gated = True
    hub.repo("org/broken", {**single(tmp_path), "config.json": b"{"})
    hub.repo("org/index", {**sharded(2, tmp_path), INDEX: b'{"weight_map": []}'})
    hub.failures.append(Failure(404, where="/org/draft-3/resolve", times=99))
    names = [*hub.repos, "org/dead"]
    done = sweep(hub, tmp_path, "--from", "-", given="\n".join(names))
    said = reports(done.stdout)
    assert done.returncode == 3
    assert said.keys() == set(names)
    kinds = {name: report["error"]["kind"] for name, report in said.items() if report["error"]}
    assert kinds == {
        "org/gated": "gated-repo",
        "org/broken": "bad-config",
        "org/index": "bad-index",
        "org/dead": "no-such-repo",
        "org/draft-3": "no-such-repo",
    }


def test_names_out_of_a_file_and_each_once(hub: FakeHub, tmp_path: Path) -> None:
    hub.repo("org/a", single(tmp_path))
    hub.repo("org/b", {}).push({f"dflash/{k}": v for k, v in single(tmp_path).items()}, "v1")
    names = tmp_path / "names.txt"
    names.write_text(
        "# drafts\norg/a   # the first\n\nhf://org/a\n  org/b@v1:dflash/\r\n", encoding="utf-8-sig"
    )
    first = sweep(hub, tmp_path, "org/a", "--from", str(names))
    assert first.returncode == 0
    said = reports(first.stdout)
    assert said.keys() == {"org/a", "org/b:dflash"}
    (tmp_path / "earlier.jsonl").write_text(first.stdout)
    (tmp_path / "org" / "a").mkdir(parents=True)  # a report names a repo, whatever folders are here
    again = sweep(hub, tmp_path, "--from", "earlier.jsonl")
    assert reports(again.stdout) == said


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"org/a\n{\n", "line 2: is no report"),
        (b'{"source": 1}\n', "line 1: is no report"),
        (b"\xff\xfe", "is not UTF-8 (byte 0)"),
        (b"# nothing\n", "no source: name some"),
    ],
)
def test_a_file_that_names_nothing(content: bytes, told: str, tmp_path: Path) -> None:
    (tmp_path / "names").write_bytes(content)
    done = sweep(None, tmp_path, "--from", "names")
    assert (done.returncode, done.stdout) == (2, "")
    assert told in done.stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "no source: name some"),
        (["--from", "nix"], "nix: cannot be read: No such file or directory"),
        ([str(SEED), "--resume"], "--resume goes on with a file: name it with -o"),
        ([str(SEED), "--author", ""], "--author is empty"),
        (["--author", "org", "--search", " "], "--search is empty"),
        ([str(SEED), "--jobs", "0"], "--jobs"),
        ([str(SEED), "--format", "html"], "html"),
        ([str(SEED), "--engine", "sglang-0.5.2"], "Did you mean sglang-0.5.23?"),
    ],
)
def test_a_wrong_command_line(words: list[str], told: str, tmp_path: Path) -> None:
    done = sweep(None, tmp_path, *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert told in " ".join(done.stderr.split())


class TestListing:
    def fill(self, hub: FakeHub, tmp_path: Path) -> None:
        draft = single(tmp_path)
        target = {**draft, "config.json": b'{"architectures": ["Qwen3ForCausalLM"]}'}
        hub.repo("org/by-class", draft)
        hub.repo("org/Qwen3-8B-DFlash-b16", {**draft, "config.json": b'{"architectures": 5}'})
        hub.repo("org/Qwen3-8B", {**target, **{f"dflash/{name}": file for name, file in draft.items()}})
        hub.repo("org/Qwen3-4B", target)
        hub.repo("org/x-DFlash-GGUF", {"config.json": b"{}", "x.gguf": b""})
        hub.repo("other/DFlash", draft)
        hub.repo("org/secret-DFlash", draft).private = True

    def test_of_an_author_what_looks_like_a_draft(self, hub: FakeHub, tmp_path: Path) -> None:
        self.fill(hub, tmp_path)
        hub.page = 2
        done = sweep(hub, tmp_path, "--author", "org")
        assert reports(done.stdout).keys() == {
            "org/by-class",
            "org/Qwen3-8B-DFlash-b16",
            "org/Qwen3-8B:dflash",
        }
        assert done.stderr.splitlines()[0] == (
            "dflash-audit: 5 repos listed, 3 drafts in them; left out:"
            " 1 (neither class nor name is a draft's); left out:"
            " 1 (no config.json with .safetensors files beside it)"
        )
        assert len([path for path in hub.paths() if path.startswith("/api/models?")]) == 3

    def test_a_word_in_the_name(self, hub: FakeHub, tmp_path: Path) -> None:
        self.fill(hub, tmp_path)
        done = sweep(hub, tmp_path, "--search", "dflash")
        assert reports(done.stdout).keys() == {"org/Qwen3-8B-DFlash-b16", "other/DFlash"}
        done = sweep(hub, tmp_path, "--search", "dflash", "--author", "other")
        assert reports(done.stdout).keys() == {"other/DFlash"}

    def test_nothing_is_no_pass(self, hub: FakeHub, tmp_path: Path) -> None:
        done = sweep(hub, tmp_path, "--author", "nobody")
        assert (done.returncode, done.stdout) == (3, "")
        assert done.stderr.splitlines()[-1] == "dflash-audit: nothing to audit"

    def test_a_hub_that_does_not_answer(self, hub: FakeHub, tmp_path: Path) -> None:
        hub.failures.append(Failure(403, where="/api/models"))
        done = sweep(hub, tmp_path, "--author", "org")
        assert (done.returncode, done.stdout) == (3, "")
        assert "the listing of repos" in done.stderr


class TestLimits:
    def test_no_more_requests_at_once_than_jobs(self, hub: FakeHub, tmp_path: Path) -> None:
        for number in range(8):
            hub.repo(f"org/draft-{number}", sharded(6, tmp_path))
        under_way, most = 0, 0

        def count(path: str) -> None:
            nonlocal under_way, most
            with hub.lock:
                under_way += 1
                most = max(most, under_way)
            time.sleep(0.02)
            with hub.lock:
                under_way -= 1

        hub.before_file = count
        assert sweep(hub, tmp_path, *hub.repos, "--jobs", "3").returncode == 0
        assert most == 3

    def test_one_that_is_told_to_wait_holds_all(self, hub: FakeHub, tmp_path: Path) -> None:
        for number in range(30):
            hub.repo(f"org/draft-{number}", single(tmp_path))
        hub.delay = 0.02
        times: list[float] = []
        hub.before_file = lambda path: times.append(time.monotonic())
        hub.failures.append(Failure(429, {"Retry-After": "2"}, "/org/draft-9/resolve"))
        done = sweep(hub, tmp_path, *hub.repos, "--jobs", "4")
        assert done.returncode == 0
        pauses = [later - earlier for earlier, later in pairwise(times)]
        # Nobody asked in the meantime, though twenty others were left.
        assert len([pause for pause in pauses if pause > 1.8]) == 1

    def test_a_limit_of_an_hour_ends_it_until_it_is_resumed(self, hub: FakeHub, tmp_path: Path) -> None:
        for number in range(20):
            hub.repo(f"org/draft-{number}", single(tmp_path))
        hub.failures.append(Failure(429, {"Retry-After": "3600"}, times=99))
        done = sweep(hub, tmp_path, *hub.repos, "-o", "out", "--jobs", "2")
        assert done.returncode == 3
        assert len(hub.log) <= 2
        said = reports((tmp_path / "out").read_text())
        assert 1 <= len(said) <= 8
        assert {report["error"]["kind"] for report in said.values()} == {"network"}
        last = done.stderr.splitlines()[-1]
        assert f"stopped, with {20 - len(said)} of 20 left: the Hub takes no request for another 3" in last
        hub.failures.clear()
        assert sweep(hub, tmp_path, *hub.repos, "-o", "out", "--resume").returncode == 0
        assert len(reports((tmp_path / "out").read_text())) == 20

    def test_a_limit_of_minutes_is_waited_for(self, hub: FakeHub, tmp_path: Path) -> None:
        hub.repo("org/a", single(tmp_path))
        hub.failures.append(Failure(429, {"Retry-After": "400"}, times=99))
        command = [sys.executable, "-m", "dflash_audit", "sweep", "org/a"]
        started = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(hub, tmp_path)
        )
        wait_for(lambda: len(hub.log) == 1)
        time.sleep(0.5)
        assert started.poll() is None
        started.send_signal(signal.SIGINT)
        assert started.wait(timeout=10) == 130  # and not once the wait is over
        started.communicate()
        assert len(hub.log) == 1


def wait_for(condition: Any) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


class TestResume:
    def draft_repos(self, hub: FakeHub, tmp_path: Path, count: int = 4) -> list[str]:
        for number in range(count):
            hub.repo(f"org/draft-{number}", single(tmp_path))
        return list(hub.repos)

    def test_goes_on_after_a_torn_line(self, hub: FakeHub, tmp_path: Path) -> None:
        names = self.draft_repos(hub, tmp_path)
        assert sweep(hub, tmp_path, *names, "-o", "out.jsonl").returncode == 0
        out = tmp_path / "out.jsonl"
        whole = out.read_bytes()
        lines = whole.splitlines(keepends=True)
        out.write_bytes(b"".join(lines[:2]) + lines[2][: len(lines[2]) // 2])
        hub.log.clear()
        done = sweep(hub, tmp_path, *names, "-o", "out.jsonl", "--resume")
        assert (done.returncode, done.stdout) == (0, "")
        assert sorted(out.read_bytes().splitlines()) == sorted(whole.splitlines())
        assert len([path for path in hub.paths() if path.startswith("/api/")]) == 2
        assert "4 sources: 4 passed" in done.stderr
        hub.log.clear()
        assert sweep(hub, tmp_path, *names, "-o", "out.jsonl", "--resume").returncode == 0
        assert hub.log == []

    def test_what_the_network_kept_is_tried_again_and_nothing_else(
        self, hub: FakeHub, tmp_path: Path
    ) -> None:
        names = self.draft_repos(hub, tmp_path)
        hub.failures.append(Failure(500, {"Retry-After": "7000"}, "draft-1", times=1))
        first = sweep(hub, tmp_path, *names, "org/dead", "-o", "out.jsonl")
        assert first.returncode == 3
        said = reports((tmp_path / "out.jsonl").read_text())
        assert said["org/draft-1"]["error"]["kind"] == "network"
        hub.log.clear()
        done = sweep(hub, tmp_path, *names, "org/dead", "-o", "out.jsonl", "--resume")
        assert done.returncode == 3  # the dead one is as dead as before, and in the table
        assert "5 sources: 4 passed, 0 failed, 1 not read" in done.stderr
        said = reports((tmp_path / "out.jsonl").read_text())
        assert said.keys() == {*names, "org/dead"}
        assert said["org/draft-1"]["error"] is None
        assert all("draft-1" in path for path in hub.paths())

    def test_a_path_in_another_spelling_is_the_same(self, tmp_path: Path) -> None:
        shutil.copytree(SEED, tmp_path / "a")
        done = sweep(None, tmp_path, "a/", "./a", str(tmp_path / "a"), "-o", "out")
        assert (done.returncode, [*reports((tmp_path / "out").read_text())]) == (0, ["a/"])
        before = (tmp_path / "out").read_bytes()
        assert sweep(None, tmp_path, "./a", "-o", "out", "--resume").returncode == 0
        assert (tmp_path / "out").read_bytes() == before

    def test_two_at_once_lose_nothing(self, hub: FakeHub, tmp_path: Path) -> None:
        names = self.draft_repos(hub, tmp_path, 6)
        (tmp_path / "out").write_bytes(START)  # a torn line, for which the file would be replaced
        hub.delay = 0.2
        command = [
            sys.executable,
            "-m",
            "dflash_audit",
            "sweep",
            *names,
            "-o",
            "out",
            "--resume",
            "--jobs",
            "1",
        ]
        first = subprocess.Popen(
            command, cwd=tmp_path, env=environment(hub, tmp_path), stderr=subprocess.PIPE
        )
        wait_for(lambda: len(hub.log) > 0)
        with first:
            second = sweep(hub, tmp_path, *names, "-o", "out", "--resume")
            assert first.poll() is None
            first.communicate()
        assert (first.returncode, second.returncode) == (0, 3)
        assert second.stderr == "dflash-audit: out: another sweep writes into it\n"
        assert reports((tmp_path / "out").read_text()).keys() == {*names}

    def test_a_file_that_was_replaced_meanwhile_is_not_taken(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        out = tmp_path / "out"
        lock = fcntl.flock

        def late(handle: int, how: int) -> None:
            (tmp_path / "new").write_text("new")
            (tmp_path / "new").rename(out)
            lock(handle, how)

        monkeypatch.setattr(fcntl, "flock", late)
        with pytest.raises(Unreadable, match="another sweep"):
            claim(str(out))
        monkeypatch.setattr(fcntl, "flock", lock)
        with claimed(str(out)), pytest.raises(Unreadable, match="another sweep"):
            claim(str(out))
        os.close(claim(str(out)))

    def test_what_is_no_file_is_for_all(self) -> None:
        with claimed(os.devnull):
            os.close(claim(os.devnull))

    def test_a_file_that_turns_into_another_programs_is_left_alone(self, tmp_path: Path) -> None:
        (tmp_path / "out").write_text("my notes\n")
        probe = (
            "import sys; sys.argv = ['dflash-audit', 'sweep', *sys.argv[1:]]\n"
            "import dflash_audit.sweeping.earlier as module\n"
            "module.read_earlier = lambda path: module.Earlier(dropped=1)\n"
            "from dflash_audit.cli import main\n"
            "main()"
        )
        command = [sys.executable, "-c", probe, str(SEED), "-o", "out", "--resume"]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
        assert (done.returncode, "is no line of a sweep" in done.stderr) == (2, True)
        assert [path.name for path in tmp_path.iterdir()] == ["out"]
        assert (tmp_path / "out").read_text() == "my notes\n"

    def test_without_it_results_are_not_written_over(self, tmp_path: Path) -> None:
        (tmp_path / "out.jsonl").write_text("x")
        done = sweep(None, tmp_path, str(SEED), "-o", "out.jsonl")
        assert done.returncode == 2
        assert "--resume goes on with it" in done.stderr
        assert (tmp_path / "out.jsonl").read_text() == "x"

    @pytest.mark.parametrize("content", ["my notes\n", "my notes", '{"a": 1}\n', '{"schema_version": 1}'])
    def test_another_programs_file_is_left_alone(self, content: str, tmp_path: Path) -> None:
        (tmp_path / "out").write_text(content)
        done = sweep(None, tmp_path, str(SEED), "-o", "out", "--resume")
        assert done.returncode == 2
        assert "is no line of a sweep" in done.stderr
        assert (tmp_path / "out").read_text() == content

    def test_other_engines_are_another_sweep(self, tmp_path: Path) -> None:
        assert sweep(None, tmp_path, str(SEED), "-o", "out").returncode == 0
        done = sweep(None, tmp_path, str(SEED), "-o", "out", "--resume", "--engine", "all")
        assert done.returncode == 2
        assert "was written with --engine sglang-next" in done.stderr

    @pytest.mark.parametrize(
        ("words", "told"),
        [
            (("--fail-on", "warning"), 'another fail_on: "error"'),
            (("--tp", "2"), "another tp: [1]"),
            (("--gpu", "t4"), "another capability: 90"),
            (("--quantization", "fp8"), "another quantization: null"),
        ],
    )
    def test_other_conditions_are_another_sweep(
        self, words: tuple[str, ...], told: str, tmp_path: Path
    ) -> None:
        assert sweep(None, tmp_path, str(SEED), "-o", "out").returncode == 0
        before = (tmp_path / "out").read_bytes()
        done = sweep(None, tmp_path, str(SEED), "-o", "out", "--resume", *words)
        assert (done.returncode, (tmp_path / "out").read_bytes()) == (2, before)
        assert f"was written with {told}" in " ".join(done.stderr.split())


def test_an_interrupt_keeps_what_was_done(hub: FakeHub, tmp_path: Path) -> None:
    for number in range(60):
        hub.repo(f"org/draft-{number}", single(tmp_path))
    hub.delay = 0.05
    out = tmp_path / "out.jsonl"
    command = [sys.executable, "-m", "dflash_audit", "sweep", *hub.repos, "-o", str(out), "--jobs", "2"]
    started = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(hub, tmp_path)
    )
    wait_for(lambda: out.exists() and out.read_bytes().count(b"\n") >= 3)
    started.send_signal(signal.SIGINT)
    stdout, stderr = started.communicate(timeout=20)
    kept = reports(out.read_text())
    assert (started.returncode, stdout) == (130, "")
    assert 3 <= len(kept) < 60
    assert f"dflash-audit: interrupted, with {60 - len(kept)} of 60 left" in stderr
    assert "exit code 130" in stderr
    assert "exit code 0" not in stderr
    assert "Traceback" not in stderr
    hub.delay = 0
    done = sweep(hub, tmp_path, *hub.repos, "-o", str(out), "--resume")
    assert done.returncode == 0
    assert reports(out.read_text()).keys() == set(hub.repos)


def test_a_draft_that_no_deciding_engine_judged_has_not_passed(tmp_path: Path) -> None:
    shutil.copytree(SEED, tmp_path / "draft")
    config = json.loads((tmp_path / "draft" / "config.json").read_text())
    config["architectures"] = ["Lfm2DSparkDraftModel"]
    (tmp_path / "draft" / "config.json").write_text(json.dumps(config))
    done = sweep(None, tmp_path, "draft", str(SEED), "--format", "table")
    first, second = done.stdout.splitlines()[2:4]
    assert (first[:11].strip(), second[:11].strip()) == ("not judged", "passed")
    assert "2 sources: 1 passed, 0 failed, 0 not read, 1 not judged" in done.stdout
    assert done.returncode == 0


def test_several_sizes_and_a_target_hold_for_each(tmp_path: Path) -> None:
    target = {"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "num_hidden_layers": 2}
    (tmp_path / "target").mkdir()
    (tmp_path / "target" / "config.json").write_text(json.dumps(target))
    words = ("--tp", "1,2", "--target", "target", "-o", "out")
    done = sweep(None, tmp_path, str(SEED), str(DENSE), *words)
    found = reports((tmp_path / "out").read_text())
    assert done.returncode == 1
    assert len(found) == 2
    for report in found.values():
        assert [each["tp"] for each in report["engines"][0]["verdicts"]] == [1, 2]
        assert report["target"]["id"] == "target"
        assert "target-layers" in {finding["rule"] for finding in report["findings"]}
    again = sweep(None, tmp_path, str(SEED), str(DENSE), *words, "--resume")
    assert again.returncode == 1
    assert reports((tmp_path / "out").read_text()) == found
    spelled = ("--tp", "2,1", "--target", "./target/", "-o", "out", "--resume")
    assert sweep(None, tmp_path, str(SEED), str(DENSE), *spelled).returncode == 1
    assert reports((tmp_path / "out").read_text()) == found
    for other, told in (
        (("--tp", "1,2"), "another target: "),
        (("--tp", "1", "--target", "target"), "another tp: [1, 2]"),
    ):
        done = sweep(None, tmp_path, str(SEED), *other, "-o", "out", "--resume")
        assert done.returncode == 2
        assert f"was written with {told}" in " ".join(done.stderr.split())


def test_the_table_is_readable_on_80_columns(tmp_path: Path) -> None:
    """No word of it is broken: neither a source's name, nor a verdict, nor a rule."""
    shutil.copytree(SEED, tmp_path / "Qwen3.8-27B-DFlash2-W8A16")
    source = ["Qwen3.8-27B-DFlash2-W8A16"]
    command = [sys.executable, "-m", "dflash_audit", "sweep", *source, "--format", "table", "--tp", "1,4"]
    env = {**os.environ, "COLUMNS": "80"}
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=env, check=False)
    head, below, first, second = done.stdout.splitlines()[:4]
    assert (head.split(), below.split()) == (
        ["sglang", "sglang", "sglang", "vllm", "source"],
        ["0.5.19", "0.5.23", "next", "0.33.0", "and", "why"],
    )
    assert first.split() == ["failed", "fail", "fail", "fail", "fail", *source]
    assert second.split() == ["refused-build"]
    assert all(len(line) <= 80 for line in done.stdout.splitlines())


def test_a_target_that_is_not_there(tmp_path: Path) -> None:
    done = sweep(None, tmp_path, str(SEED), "--target", "./none", "-o", "out")
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith("dflash-audit: ./none: ")
    assert not (tmp_path / "out").exists()


def test_a_reader_that_has_seen_enough(hub: FakeHub, tmp_path: Path) -> None:
    for number in range(30):
        hub.repo(f"org/draft-{number}", single(tmp_path))
    hub.delay = 0.02
    command = f'"{sys.executable}" -m dflash_audit sweep "$@" --jobs 2 | head -n 1; exit ${{PIPESTATUS[0]}}'
    done = subprocess.run(
        ["bash", "-c", command, "bash", *hub.repos],
        capture_output=True,
        text=True,
        env=environment(hub, tmp_path),
        check=False,
    )
    assert done.returncode == 0
    assert len(reports(done.stdout)) == 1
    assert "Traceback" not in done.stderr and "Broken" not in done.stderr
    assert len(hub.log) < 90  # it does not go on for nobody


@pytest.mark.parametrize("streams", [">&-", "2>&-", ">&- 2>&-"])
def test_closed_streams(streams: str, hub: FakeHub, tmp_path: Path) -> None:
    hub.repo("org/a", single(tmp_path))
    command = f'exec "{sys.executable}" -m dflash_audit sweep "$@" {streams}'
    done = subprocess.run(
        ["bash", "-c", command, "bash", str(SEED), "org/a", "--engine", "all"],
        capture_output=True,
        text=True,
        env=environment(hub, tmp_path),
        check=False,
    )
    assert done.returncode == 1
    assert len(done.stdout.splitlines()) == (2 if streams == "2>&-" else 0)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk(tmp_path: Path) -> None:
    done = sweep(None, tmp_path, str(SEED), "-o", "/dev/full")
    assert done.returncode == 3
    assert done.stderr.splitlines()[-1].startswith("dflash-audit: /dev/full: cannot be written: ")
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "dflash_audit", "sweep", str(SEED)]
        out = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, cwd=tmp_path, check=False
        )
    assert out.returncode == 3
    assert "stdout" in out.stderr.splitlines()[-1]


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    done = sweep(None, tmp_path, str(SEED), "-o", "no/out.jsonl")
    assert done.returncode == 3
    assert "there is no folder" in done.stderr


def test_names_cannot_write_to_the_terminal(tmp_path: Path) -> None:
    evil = "a\x1b[31m\n[bold]x::error::##[error]"
    source = materialize(FIXTURES / "cases" / "dense-dflash1", tmp_path / evil)
    config = json.loads((source / "config.json").read_text())
    (source / "config.json").write_text(json.dumps({**config, "architectures": ["\x1b[31mNo\nSuch"]}))
    done = sweep(None, tmp_path, evil, f"{evil}/nothing", "--format", "table")
    assert done.returncode == 3
    for line in (*done.stdout.splitlines(), *done.stderr.splitlines()):
        assert line.isprintable()
        assert "##[" not in line and not line.lstrip().startswith("::")
    assert "[bold]x" in done.stdout  # as text, and no markup
    lines = sweep(None, tmp_path, evil).stdout
    assert lines.isascii() and lines.count("\n") == 1
    assert reports(lines).keys() == {evil}


def test_an_audit_that_stumbles_is_told_of(tmp_path: Path) -> None:
    probe = (
        "import sys; sys.argv = ['dflash-audit', 'sweep', *sys.argv[1:]]\n"
        "import dflash_audit.auditing as module\n"
        "right = module.judge\n"
        "def judge(facts):\n"
        "    if facts.checkpoint.id.endswith('bf16'): raise IndexError('too far')\n"
        "    return right(facts)\n"
        "module.judge = judge\n"
        "from dflash_audit.cli import main\n"
        "main()"
    )
    command = [sys.executable, "-c", probe, str(DENSE), str(SEED)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    said = reports(done.stdout)
    assert done.returncode == 3
    assert said[str(SEED)]["error"] is None
    error = said[str(DENSE)]["error"]
    assert error["kind"] == "audit-failed"
    assert "IndexError: too far" in error["message"]
    (tmp_path / "out").write_text(done.stdout)
    mended = sweep(None, tmp_path, str(DENSE), str(SEED), "-o", "out", "--resume")
    assert mended.returncode == 0
    assert reports((tmp_path / "out").read_text())[str(DENSE)]["error"] is None


def test_the_settings_of_a_folder_that_is_audited_are_not_read(tmp_path: Path) -> None:
    (tmp_path / ".dflash-audit.toml").write_text('fail-on = "never"')
    shutil.copytree(SEED, tmp_path / "draft")
    assert sweep(None, tmp_path, "draft", "--engine", "all").returncode == 0
    done = sweep(None, tmp_path, str(SEED), ".", "--engine", "sglang-0.5.23")
    assert "is not read" in done.stderr
    assert done.returncode == 3


def test_a_terminal_gets_the_table_and_a_bar(hub: FakeHub, tmp_path: Path) -> None:
    for number in range(10):
        hub.repo(f"org/draft-{number}", single(tmp_path))
    hub.delay = 0.1
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "dflash_audit", "sweep", *hub.repos, "--jobs", "2"]
    env = {**environment(hub, tmp_path), "TERM": "xterm"}
    started = subprocess.Popen(command, stdout=theirs, stderr=theirs, stdin=theirs, env=env)
    os.close(theirs)
    shown = bytearray()
    while True:
        try:
            chunk = os.read(ours, 2**16)
        except OSError:  # how Linux says that the other end is closed
            break
        if not chunk:
            break
        shown += chunk
    os.close(ours)
    assert started.wait(timeout=20) == 0
    text = shown.decode()
    assert "/10" in text  # the bar
    assert "10 sources: 10 passed" in text
    assert '"schema_version"' not in text
