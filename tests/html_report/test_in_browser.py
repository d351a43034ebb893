"""The page in a real Chromium: cells and their states, search, keyboard, links; and that it loads nothing."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from html_report.browser import Browser

from dflash_audit.report import Report

Page = Callable[[Report], Path]
Audited = Callable[[str], Report]

RELEASE = "sglang-0.5.23"
SHOWN = "[...document.querySelectorAll('.cell:not(.dim)')].map((cell) => cell.getAttribute('aria-label'))"
FOCUSED = "document.activeElement.getAttribute('aria-label') ?? document.activeElement.id"


@pytest.fixture
def seed(browser: Browser, audited: Audited, page: Page) -> Iterator[Browser]:
    path = page(audited("seed-w8a16"))
    browser.open(path)
    yield browser
    assert browser.requests == [path.as_uri()]
    assert browser.complaints == []


def shown(browser: Browser) -> list[str]:
    labels: list[str] = browser.evaluate(SHOWN)
    return labels


def test_every_engine_has_its_cells_and_their_states(seed: Browser) -> None:
    states = f"""[...document.querySelectorAll('.treemap[aria-label$="{RELEASE}"] .cell')]
        .map((cell) => [cell.getAttribute('aria-label').split(', ')[0], cell.classList[1]])"""
    found = [tuple(pair) for pair in seed.evaluate(states)]
    for layer in (0, 1):
        for shard in "qkv":
            assert (f"layers.{layer}.self_attn.{shard}_proj.weight", "dropped") in found
            assert (f"layers.{layer}.self_attn.qkv_proj.weight_packed[{shard}]", "unfilled") in found
        assert (f"layers.{layer}.mlp.down_proj.weight_packed", "loaded") in found
    assert ("fc.weight", "unfilled") in found and ("fc.weight_packed", "dropped") in found
    other = (
        "[...document.querySelectorAll('.treemap[aria-label$=\"sglang-next\"] .cell:not(.loaded)')].length"
    )
    assert seed.evaluate(other) == 0


def test_states_differ_in_colour_and_in_more_than_colour(seed: Browser) -> None:
    looks = """['loaded', 'dropped', 'unfilled'].map((state) => {
        const cell = document.querySelector(`.cell.${state}`), style = getComputedStyle(cell);
        return [style.backgroundColor + style.backgroundImage, style.borderStyle,
                cell.querySelector('b')?.textContent ?? ''].join(' ');
    })"""
    for dark in (False, True):
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        seed.send("Emulation.setEmulatedMedia", features=[scheme])
        loaded, dropped, unfilled = seed.evaluate(looks)
        assert loaded.endswith(" none ")
        assert "repeating-linear-gradient" in dropped and dropped.endswith(" D")
        assert "dashed" in unfilled and unfilled.endswith(" U")


def test_a_module_has_one_place_on_all_engines_and_bytes_are_area(seed: Browser) -> None:
    places = """[...document.querySelectorAll('.treemap')].map((treemap) => {
        const at = treemap.getBoundingClientRect();
        return [...treemap.querySelectorAll('.module')].map((module) => {
            const box = module.getBoundingClientRect();
            return [box.x - at.x, box.y - at.y, box.width, box.height].map(Math.round).join();
        }).join(' ');
    })"""
    found = seed.evaluate(places)
    assert found[0::4] == found[1::4] and len(found) == 12
    areas = """Object.fromEntries([...document.querySelectorAll('.cell')].slice(0, 3).map((cell) => {
        const box = cell.getBoundingClientRect();
        return [cell.getAttribute('aria-label').slice(-8), box.width * box.height];
    }))"""
    q, k = (seed.evaluate(areas)[size] for size in ("65.5 kB".rjust(8), "32.8 kB".rjust(8)))
    assert q / k == pytest.approx(2, rel=0.1)


def test_the_smallest_cells_can_be_seen(seed: Browser) -> None:
    sides = """[...document.querySelectorAll('.cell')].map((cell) => cell.getBoundingClientRect())
        .map((box) => Math.min(box.width, box.height))"""
    assert min(seed.evaluate(sides)) >= 11


def test_search_and_states_leave_what_matches(seed: Browser) -> None:
    seed.press("/")
    assert seed.evaluate(FOCUSED) == "Search the cells"
    seed.type("Q_PROJ dropped")
    assert {label.split(",")[0] for label in shown(seed)} == {
        "layers.0.self_attn.q_proj.weight",
        "layers.1.self_attn.q_proj.weight",
    }
    assert seed.evaluate("matches.textContent").startswith("4 of ")
    seed.press("Enter")
    assert seed.evaluate(FOCUSED).startswith("layers.0.self_attn.q_proj.weight, dropped")
    seed.press("Escape")
    everything = len(shown(seed))
    assert everything > 100
    seed.evaluate(
        "[...document.querySelectorAll('.state')].find((s) => s.innerText.includes('unfilled')).click()"
    )
    assert shown(seed) and all(", unfilled, " in label for label in shown(seed))
    seed.press("Escape")
    assert len(shown(seed)) == everything


def test_arrows_walk_and_enter_opens(seed: Browser) -> None:
    seed.evaluate("document.querySelector('.cell').focus()")
    start = seed.evaluate(FOCUSED)
    assert start.startswith("layers.0.self_attn.qkv_proj.weight[q]")
    left = "document.activeElement.getBoundingClientRect().left"
    at = seed.evaluate(left)
    seed.press("ArrowRight")
    assert seed.evaluate(left) > at and seed.evaluate(FOCUSED) != start
    seed.press("ArrowLeft")
    assert seed.evaluate(FOCUSED) == start
    for _ in range(8):
        if not seed.evaluate(FOCUSED).startswith("layers.1."):
            seed.press("ArrowDown")
    assert seed.evaluate(FOCUSED).startswith("layers.1.")
    seed.press("Home")
    assert seed.evaluate(FOCUSED) == start
    assert not seed.evaluate("tip.hidden")
    seed.press("Enter")
    assert seed.evaluate("tip.hidden") and not seed.evaluate("inspector.hidden")
    words = seed.evaluate("inspector.innerText")
    for said in (
        "prefix asked layers.0.self_attn.qkv_proj",
        "layers.0.self_attn.q_proj.weight BF16 256 \u00d7 128",
        f"{RELEASE}: dropped",
    ):
        assert said in re.sub(r"\s+", " ", words)
    seed.press("Escape")
    assert seed.evaluate("inspector.hidden") and seed.evaluate(FOCUSED) == start


def test_a_strip_is_one_stop_for_the_tab_key(seed: Browser) -> None:
    stops = """[...document.querySelectorAll('.treemap')]
        .map((treemap) => treemap.querySelectorAll('.cell[tabindex="0"]').length)"""
    assert seed.evaluate(stops) == [1] * 12
    seed.evaluate("document.querySelector('.cell').focus()")
    seed.press("Tab")
    assert (
        seed.evaluate("document.activeElement.closest('.treemap').getAttribute('aria-label')")
        == "layers.0 on sglang-0.5.19"
    )


def test_hovering_a_cell_says_what_it_is(seed: Browser) -> None:
    x, y = seed.evaluate("""(() => {
        const cell = document.querySelector('.cell[aria-label^="layers.0.self_attn.q_proj"]');
        const box = cell.getBoundingClientRect();
        return [box.x + box.width / 2, box.y + box.height / 2];
    })()""")
    seed.send("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
    words = seed.evaluate("tip.innerText")
    for said in (
        "layers.0.self_attn.q_proj.weight",
        "256 \u00d7 128",
        "BF16",
        "dropped",
        "QKVParallelLinear",
        "qkv_proj",
    ):
        assert said in words


def test_findings_and_cells_lead_to_one_another(seed: Browser) -> None:
    article = """[...document.querySelectorAll('.finding')]
        .find((of) => of.innerText.includes('q_proj') && of.innerText.includes('dropped')
            && of.querySelector('.show'))"""
    seed.evaluate(f"{article}.querySelector('.show').click()")
    assert {label.split(", ")[1] for label in shown(seed)} == {"dropped"}
    assert len(shown(seed)) == 12
    seed.press("Escape")
    seed.evaluate("""document.querySelector('.cell[aria-label^="fc.weight_packed, dropped"]').click()""")
    seed.evaluate("inspector.querySelector('.link.error').click()")
    focused = seed.evaluate("document.activeElement.innerText")
    assert "fc.{weight_packed,weight_scale,weight_shape}" in focused
    # The finding is of two releases, and shows their cells.
    assert {label.split(",")[0] for label in shown(seed)} == {
        "fc.weight_packed",
        "fc.weight_scale",
        "fc.weight_shape",
    }


def test_alike_layers_fold_and_unfold(seed: Browser) -> None:
    titles = "[...document.querySelectorAll('.strip h3 code')].map((title) => title.textContent)"
    assert seed.evaluate(titles) == ["layers.0", "layers.1", "outside the layers"]
    seed.evaluate("fold.click()")
    assert seed.evaluate(titles) == ["layers.0-1", "outside the layers"]
    seed.evaluate("fold.click()")
    assert len(seed.evaluate(titles)) == 3


@pytest.mark.parametrize("width", [360, 768, 1440])
def test_nothing_is_wider_than_the_screen(width: int, browser: Browser, audited: Audited, page: Page) -> None:
    browser.open(page(audited("seed-w8a16")), width=width)
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    columns = """new Set([...document.querySelectorAll('.treemap')].slice(0, 2)
        .map((treemap) => treemap.getBoundingClientRect().left)).size"""
    assert browser.evaluate(columns) == (1 if width == 360 else 2)


def test_it_draws_anew_for_another_width(seed: Browser) -> None:
    seed.send("Emulation.setDeviceMetricsOverride", width=700, height=900, deviceScaleFactor=1, mobile=False)
    for _ in range(3):
        seed.evaluate("new Promise((done) => requestAnimationFrame(done))")
    assert seed.evaluate("document.querySelector('.treemap').clientWidth") > 500
    assert len(shown(seed)) > 100


def test_without_scripts_it_can_be_read(browser: Browser, audited: Audited, page: Page) -> None:
    browser.open(page(audited("seed-w8a16")), scripts=False)
    text = browser.evaluate("document.body.innerText")
    assert (
        "does not serve" in text and "dropped-tensor" in text and "layers.0-1.self_attn.q_proj.weight" in text
    )
    assert "Module map" not in text


def test_a_draft_that_is_not_built_shows_what_is_stored(
    browser: Browser, audited: Audited, page: Page
) -> None:
    browser.open(page(audited("cases/act-gelu")))
    states = "[...new Set([...document.querySelectorAll('.cell')].map((cell) => cell.classList[1]))]"
    assert browser.evaluate(states) == ["unread"]
    assert browser.complaints == []


def test_hostile_names_stay_text(browser: Browser, with_tensors: Callable[..., Report], page: Page) -> None:
    name = "</script><img src=http://127.0.0.1:9/x onerror=alert(1)>\u2028\u202e"
    path = page(
        with_tensors("seed-bf16", {f"{name}.weight": ("BF16", [2, 2]), f"layers.0.{name}": ("F32", [1])})
    )
    browser.open(path)
    browser.evaluate(
        "document.querySelectorAll('.cell.dropped').forEach((cell) => { cell.click(); cell.focus(); })"
    )
    assert browser.evaluate("document.querySelectorAll('img').length") == 0
    assert browser.evaluate("inspector.innerText").count("onerror=alert(1)>\\u2028\\u202e") >= 1
    assert browser.requests == [path.as_uri()]
    assert browser.complaints == []


def test_ten_thousand_tensors_fold_into_a_map(
    browser: Browser, with_tensors: Callable[..., Report], page: Page
) -> None:
    experts = {
        f"layers.{layer}.mlp.experts.{expert}.{part}.weight": ("BF16", [8, 8])
        for layer in range(50)
        for expert in range(100)
        for part in ("up", "down")
    }
    path = page(with_tensors("seed-bf16", experts))
    assert path.stat().st_size < 12_000_000
    browser.open(path)
    assert int(browser.evaluate("matches.textContent").split()[0].replace(",", "")) > 20_000
    drawn = len(shown(browser))
    assert drawn < 500
    browser.evaluate("search.value = 'experts.77.up'; search.dispatchEvent(new Event('input'))")
    assert browser.evaluate("matches.textContent").startswith(
        "200 of "
    )  # SGLang's releases drop them in silence
    assert 0 < len(shown(browser)) < drawn
    assert browser.complaints == []


def test_on_paper_the_map_and_all_findings_are_there(seed: Browser) -> None:
    seed.send("Emulation.setDeviceMetricsOverride", width=760, height=1000, deviceScaleFactor=1, mobile=False)
    seed.send("Emulation.setEmulatedMedia", media="print")
    try:
        assert seed.evaluate("search.getBoundingClientRect().width") == 0
        assert seed.evaluate("document.querySelector('.treemap').getBoundingClientRect().width") > 150
        assert seed.evaluate("document.documentElement.scrollWidth") <= 760
        assert seed.evaluate("findings.scrollHeight - findings.clientHeight") <= 0
    finally:
        seed.send("Emulation.setEmulatedMedia", media="")
