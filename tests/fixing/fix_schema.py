"""What `fix --json` prints in a test is held against the published schema."""

import json
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator

from dflash_audit.formats.fix.json import schema


@cache
def validator() -> Any:
    """What holds a document against the schema of a repair."""
    read = json.loads(schema())
    Draft202012Validator.check_schema(read)
    return Draft202012Validator(read)


def valid(repair: dict[str, Any]) -> dict[str, Any]:
    """The repair as given, once it is what the schema says."""
    problems = [f"{error.json_path}: {error.message[:300]}" for error in validator().iter_errors(repair)]
    assert problems == []
    return repair
