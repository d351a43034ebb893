// The tooltip over a cell, and the pane that opens on it: its facts, its findings, the same on other engines.

const tip = document.getElementById("tip");
const inspector = document.getElementById("inspector");
let opened = null;

function showTip(element) {
  const spot = spots.get(element);
  tip.replaceChildren(make("code", "name", nameOf(spot)), factList(spot));
  tip.hidden = false;
  const cell = element.getBoundingClientRect();
  const own = tip.getBoundingClientRect();
  const below = cell.bottom + own.height + 8 < innerHeight;
  const top = below ? cell.bottom + 6 : Math.max(4, cell.top - own.height - 6);
  tip.style.left = `${Math.max(4, Math.min(cell.left, document.documentElement.clientWidth - own.width - 4))}px`;
  tip.style.top = `${top}px`;
}

function hideTip() {
  tip.hidden = true;
}

/** While the page scrolls the tooltip stays with the cell that the keyboard is on. */
function followTip() {
  const focused = document.activeElement;
  if (!tip.hidden && spots.has(focused) && focused.matches(":focus-visible")) showTip(focused);
  else hideTip();
}

function inspect(element) {
  const spot = spots.get(element);
  hideTip();
  opened?.classList.remove("opened");
  opened = element;
  element.classList.add("opened");
  const heading = make("h3", "", make("i", `swatch ${STATES[spot.first.state].id}`, STATES[spot.first.state].letter), make("code", "", nameOf(spot)));
  const shut = button("shut", "\u00d7", closeInspector);
  shut.setAttribute("aria-label", "Close");
  const on = make("p", "on", "on ", make("code", "", spot.first.module.engine.name));
  inspector.replaceChildren(shut, heading, on, factList(spot), ...aboutOthers(spot), ...aboutFindings(spot), ...aboutAlike(spot));
  inspector.hidden = false;
  inspector.focus({ preventScroll: true });
}

function closeInspector() {
  if (inspector.hidden) return false;
  inspector.hidden = true;
  opened?.classList.remove("opened");
  opened?.focus();
  return true;
}

function aboutFindings(spot) {
  const indices = [...new Set(spot.cells.flatMap((cell) => cell.findings))];
  if (!indices.length) return [];
  const list = make("ul", "links");
  for (const index of indices) {
    const { rule, severity } = report.findings[index];
    list.append(make("li", "", button(`link ${severity}`, `${severity}: ${rule}`, () => goToFinding(index))));
  }
  return [make("h4", "", "Findings"), list];
}

function aboutOthers(spot) {
  const others = twins(spot.first);
  if (!others.length) return [];
  const list = make("ul", "links");
  for (const other of others.slice(0, 6)) {
    const state = STATES[other.state];
    const words = `${other.module.engine.name}: ${state.word}, ${targetOf(other)}`;
    list.append(make("li", "", make("i", `swatch ${state.id}`, state.letter), button("link", words, () => goToCell(other))));
  }
  return [make("h4", "", "On other engines"), list];
}

function aboutAlike(spot) {
  if (spot.cells.length < 2) return [];
  const names = make("p", "alike", listed(spot.cells.map(targetOf), 200));
  return [make("h4", "", `Stands for ${plural(spot.cells.length, "cell")}`), names];
}

function goToFinding(index) {
  const article = document.getElementById(`finding-${index}`);
  selectFinding(index);
  article.scrollIntoView({ block: "center" });
  article.focus({ preventScroll: true });
}

function goToCell(cell) {
  for (const [element, spot] of spots) {
    if (!spot.cells.includes(cell)) continue;
    walkTo(element);
    inspect(element);
    return;
  }
}

map.addEventListener("pointerover", (event) => {
  const cell = event.target.closest(".cell");
  if (cell) showTip(cell);
  else hideTip();
});
map.addEventListener("pointerleave", hideTip);
map.addEventListener("focusin", (event) => {
  if (event.target.matches(".cell:focus-visible")) showTip(event.target);
});
map.addEventListener("focusout", hideTip);
map.addEventListener("click", (event) => {
  const cell = event.target.closest(".cell");
  if (cell) inspect(cell);
});
addEventListener("scroll", followTip, { passive: true });
