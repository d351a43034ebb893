"""A config.json changed as text: what is changed is what was asked for, and nothing else."""

import json
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dflash_audit.fixing.json_text import NotEditable, rewritten

SPACES = st.sampled_from(["", " ", "\n", "\t", "\r\n", "  \n   ", "\n\n\t "])
KEYS = st.sampled_from(["a", "b", "é", "z\n", "architectures", "ignore", "ключ", "0"])
NUMBERS = st.sampled_from(["0", "-0", "1e-06", "1E+2", "10000000.0", "2", "-7", "1e400", "NaN", "0.10"])
STRINGS = st.sampled_from(
    ['"x"', '"\\u00e9"', '"é"', '"\\/"', '"re:.*\\\\.fc$"', '"\\ud83d\\ude00"', '"{[,:]}"']
)
SCALARS = st.one_of(NUMBERS, STRINGS, st.sampled_from(["true", "false", "null"]))


@st.composite
def texts(draw: st.DrawFn, depth: int = 3) -> str:
    """A JSON value in odd formatting: any white space, spelling of numbers, escapes and order of keys."""
    kind = draw(st.sampled_from(["scalar", "list", "object"])) if depth else "scalar"
    if kind == "scalar":
        return draw(SCALARS)
    if kind == "list":
        parts = [draw(texts(depth - 1)) for _ in range(draw(st.integers(0, 3)))]
        return _set_in(draw, "[", parts, "]")
    return draw(objects(depth))


@st.composite
def objects(draw: st.DrawFn, depth: int = 3) -> str:
    names = draw(st.lists(KEYS, max_size=4, unique=True))
    members = []
    for name in names:
        key = json.dumps(name, ensure_ascii=draw(st.booleans()))
        members.append(f"{key}{draw(SPACES)}:{draw(SPACES)}{draw(texts(depth - 1))}")
    return _set_in(draw, "{", members, "}")


def _set_in(draw: st.DrawFn, left: str, parts: list[str], right: str) -> str:
    spaced = [f"{draw(SPACES)}{part}{draw(SPACES)}" for part in parts]
    return left + (",".join(spaced) if spaced else draw(SPACES)) + right


def alike(one: Any, other: Any) -> bool:
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def is_cut(longer: str, shorter: str) -> bool:
    """Whether the shorter text is the longer one without one stretch of it."""
    at = next((i for i, (a, b) in enumerate(zip(longer, shorter, strict=False)) if a != b), len(shorter))
    tail = len(shorter) - at
    return longer[:at] == shorter[:at] and (tail == 0 or longer.endswith(shorter[at:]))


@settings(max_examples=60, deadline=None)
@given(objects(), SPACES, SPACES)
def test_the_same_value_leaves_the_same_text(body: str, before: str, after: str) -> None:
    text = before + body + after
    assert rewritten(text, json.loads(text)) == text


@settings(max_examples=60, deadline=None)
@given(st.data(), SPACES)
def test_a_replaced_value_is_all_that_changes(data: st.DataObject, after: str) -> None:
    old, new = data.draw(SCALARS), data.draw(SCALARS)
    around = data.draw(objects(2))
    lead, tail = "{" + data.draw(SPACES) + '"changed" :', f'{data.draw(SPACES)},"other":{around}}}' + after
    text = lead + old + tail
    wanted = {**json.loads(text), "changed": json.loads(new)}
    same = json.dumps(json.loads(old)) == json.dumps(json.loads(new))
    spelled = old if same else json.dumps(json.loads(new))
    assert rewritten(text, wanted) == lead + spelled + tail


@settings(max_examples=60, deadline=None)
@given(objects(), SPACES, texts(2))
def test_a_new_key_is_put_in_and_nothing_else(body: str, after: str, new: str) -> None:
    text = body + after
    wanted = {**json.loads(text), "added": json.loads(new)}
    changed = rewritten(text, wanted)
    assert alike(json.loads(changed), wanted)
    empty = json.loads(text) == {}
    assert is_cut(changed, text) or (empty and changed.endswith(after))


@settings(max_examples=60, deadline=None)
@given(objects(), st.integers(0, 3), SPACES)
def test_a_key_is_taken_out_and_nothing_else(body: str, which: int, after: str) -> None:
    text = body + after
    value = json.loads(text)
    if not value:
        return
    gone = [*value][which % len(value)]
    wanted = {name: inner for name, inner in value.items() if name != gone}
    changed = rewritten(text, wanted)
    assert alike(json.loads(changed), wanted)
    assert is_cut(text, changed)


@settings(max_examples=60, deadline=None)
@given(objects(), objects())
def test_any_value_can_be_reached(text: str, other: str) -> None:
    wanted = json.loads(other)
    assert alike(json.loads(rewritten(text, wanted)), wanted)


@settings(max_examples=60, deadline=None)
@given(st.lists(STRINGS, max_size=5), st.integers(0, 2**32), SPACES)
def test_entries_of_a_list_that_stay_keep_their_spelling(entries: list[str], seed: int, space: str) -> None:
    text = f'{{"ignore":[{f",{space}".join(entries)}]}}'
    rng = random.Random(seed)
    kept = [entry for entry in entries if rng.random() < 0.7]
    wanted = {"ignore": [*map(json.loads, kept), "new"]}
    changed = rewritten(text, wanted)
    assert json.loads(changed) == wanted
    if len({*map(json.loads, entries)}) == len(entries) and kept:
        assert all(entry in changed for entry in kept)


def test_new_text_takes_the_look_of_the_old() -> None:
    text = '{\r\n\t"a": 1e-06,\r\n\t"c": {"x": [1,2]}\r\n}\r\n'
    wanted = {**json.loads(text), "b": {"list": ["p"]}}
    assert rewritten(text, wanted) == (
        '{\r\n\t"a": 1e-06,\r\n\t"b": {\r\n\t\t"list": [\r\n\t\t\t"p"\r\n\t\t]\r\n\t},'
        '\r\n\t"c": {"x": [1,2]}\r\n}\r\n'
    )


@pytest.mark.parametrize(
    ("text", "wanted", "changed"),
    [
        ('{"a":1,"b":2}', {"a": 1, "b": 2, "c": 3}, '{"a":1,"b":2,"c":3}'),
        ('{"a": 1, "b": 2}', {"a": 1, "b": 2, "c": 3}, '{"a": 1, "b": 2, "c": 3}'),
        ('{"b": 1, "a": 2}', {"b": 1, "a": 2, "aa": 3}, '{"b": 1, "a": 2, "aa": 3}'),
        ('{"a": 1, "c": 2}', {"a": 1, "b": 3, "c": 2}, '{"a": 1, "b": 3, "c": 2}'),
        ("{}", {"a": 1}, '{"a": 1}'),
        ('{"f": 2}', {"f": 2.0}, '{"f": 2.0}'),
        ('{"f": 1}', {"f": True}, '{"f": true}'),
        ('{\n "l": [\n  "x"\n ]\n}', {"l": ["x", "y"]}, '{\n "l": [\n  "x",\n  "y"\n ]\n}'),
        ('{\n "l": [\n  "x",\n  "y"\n ]\n}', {"l": ["y"]}, '{\n "l": [\n  "y"\n ]\n}'),
        ('{\n "o": {}\n}', {"o": {"k": 1}}, '{\n "o": {\n  "k": 1\n }\n}'),
    ],
)
def test_layouts(text: str, wanted: dict[str, Any], changed: str) -> None:
    assert rewritten(text, wanted) == changed


@pytest.mark.parametrize(
    "text", ['{"a": 1, "a": 2}', '{"o": {"a": 1, "b": {}, "a": 1}}', '{"l": [{"k": 1, "k": 1}]}']
)
def test_a_key_that_stands_twice_is_refused(text: str) -> None:
    with pytest.raises(NotEditable, match="twice"):
        rewritten(text, {})


def test_what_is_nested_too_deep_is_refused() -> None:
    deep = '{"a":' * 2000 + "1" + "}" * 2000
    with pytest.raises(NotEditable, match="deep"):
        rewritten(deep, {"b": 1})
