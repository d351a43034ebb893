"""The process that matches patterns which might not come to an end; it imports the standard library alone.

Each line of its input asks: a JSON list of a pattern, a name, and the function of `re` to call. Each
line of its output answers: an object with `found`, or with `refused`, why Python does not compile the
pattern, and `syntax`, whether it is `re.error` that says so; `took` are the seconds of the CPU. Its argument
is how many a match may take: the system ends the process then, in the middle of it.
"""

import json
import re
import resource
import sys
from math import ceil
from time import process_time
from typing import Any


def main() -> None:
    seconds = int(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for line in sys.stdin.buffer:
        began = process_time()
        resource.setrlimit(resource.RLIMIT_CPU, (ceil(began) + seconds, resource.RLIM_INFINITY))
        answer = _answer(*json.loads(line))
        print(json.dumps({**answer, "took": process_time() - began}), flush=True)


def _answer(pattern: str, name: str, how: str) -> dict[str, Any]:
    try:
        match = getattr(re, how)(pattern, name)
    except re.error as error:
        return {"refused": str(error), "syntax": True}
    except (OverflowError, RecursionError, MemoryError) as error:
        return {"refused": str(error) or type(error).__name__, "syntax": False}
    return {"found": match is not None}


main()
