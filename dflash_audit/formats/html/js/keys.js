// The keyboard: arrows walk to the nearest cell, Enter opens, / searches, Esc steps back.

const DIRECTIONS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

/** Focuses a cell, which then is its strip's stop for the Tab key. */
function walkTo(element) {
  const treemap = element.closest(".treemap");
  treemap.querySelector('.cell[tabindex="0"]')?.setAttribute("tabindex", "-1");
  element.setAttribute("tabindex", "0");
  element.focus();
  element.scrollIntoView({ block: "nearest" });
}

function nearest(from, [dx, dy]) {
  const a = from.getBoundingClientRect();
  let best = null;
  let least = Infinity;
  for (const element of spots.keys()) {
    if (element === from || element.classList.contains("dim")) continue;
    const b = element.getBoundingClientRect();
    const ahead = dx ? (dx > 0 ? b.left - a.right : a.left - b.right) : dy > 0 ? b.top - a.bottom : a.top - b.bottom;
    if (ahead < -2) continue;
    const aside = dx ? gap(a.top, a.bottom, b.top, b.bottom) : gap(a.left, a.right, b.left, b.right);
    const middle = dx ? Math.abs(a.top + a.bottom - b.top - b.bottom) : Math.abs(a.left + a.right - b.left - b.right);
    const far = Math.max(0, ahead) + 4 * aside + middle / 100;
    if (far < least) [best, least] = [element, far];
  }
  return best;
}

/** How far two stretches are apart, 0 where they overlap. */
function gap(a, b, c, d) {
  return Math.max(0, Math.max(a, c) - Math.min(b, d));
}

map.addEventListener("keydown", (event) => {
  if (!event.target.matches(".cell")) return;
  const direction = DIRECTIONS[event.key];
  const ends = { Home: 0, End: spots.size - 1 };
  const to = direction ? nearest(event.target, direction) : [...spots.keys()][ends[event.key]];
  if (!direction && !(event.key in ends)) return;
  event.preventDefault();
  if (to) walkTo(to);
});

search.addEventListener("keydown", (event) => {
  if (event.key !== "Enter") return;
  event.preventDefault(); // else the cell that gets the focus takes the key as a click
  const first = firstMatch();
  if (first) walkTo(first);
});

addEventListener("keydown", (event) => {
  const typing = event.target instanceof HTMLInputElement;
  if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
    event.preventDefault();
    search.focus();
    search.select();
  } else if (event.key === "Escape") {
    if (!tip.hidden && inspector.hidden) hideTip();
    if (!closeInspector() && !clearFilter() && typing) search.blur();
  }
});
