"""Run one target under atheris, which follows what code an input reaches, for so many seconds.

    python -m fuzzing.run TARGET SECONDS [FOLDER] [OPTION OF LIBFUZZER...]

New inputs that reach new code go into FOLDER (a temporary one by default), beside those of the corpus that
is checked in. An input that crashes, takes 20 seconds or 2 GiB is written into the working directory.
With the options `-merge=1 FEWER` nothing is run for a time: the fewest inputs of both folders that reach as
much go into the folder FEWER.
"""

import sys
import tempfile
from pathlib import Path

import atheris

from fuzzing import TARGETS, target

CORPUS = Path(__file__).parent / "corpus"


def main() -> None:
    name, seconds, *rest = sys.argv[1:]
    folder = rest.pop(0) if rest and not rest[0].startswith("-") else tempfile.mkdtemp()
    with atheris.instrument_imports(include=["dflash_audit"]):
        check = target(name)
        check(b"")  # what is imported when it is asked for is instrumented too
        for path in sorted((CORPUS / name).glob("*")):
            check(path.read_bytes())
    words = Path(__file__).with_name("json.dict")
    options = [
        f"-dict={words}",
        f"-max_total_time={seconds}",
        f"-max_len={TARGETS[name]}",
        "-timeout=20",
        "-rss_limit_mb=2048",
    ]
    itself = f"{sys.executable} -m fuzzing.run {name} {seconds}"  # which `-merge=1` starts through a shell
    atheris.Setup([itself, *options, "-print_final_stats=1", *rest, folder, str(CORPUS / name)], check)
    atheris.Fuzz()


main()
