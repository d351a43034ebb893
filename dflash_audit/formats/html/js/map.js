// The map itself: for each strip a row, in it for each engine a treemap of the same modules in the same places.

const map = document.getElementById("map");
const FLOOR = 20 * 20; // px: the least area of a cell
const HEAD = 15; // px: the name of a module over its cells
const STRIP = 124; // px: how high a strip is on average

let folded = foldAtFirst();
/** What is drawn: a button's element -> its spot. */
const spots = new Map();

function draw() {
  const engines = report.engines.length;
  spots.clear();
  map.replaceChildren();
  map.style.setProperty("--engines", engines);
  map.append(make("div", "columns", ...report.engines.map((engine) => make("code", "", engine.name))));
  const strips = stripsOf(folded);
  const rows = strips.map((each) => row(each));
  map.append(...rows.map((each) => each.element));
  const width = rows[0]?.treemaps[0].clientWidth ?? 0;
  if (width > 0) place(rows, width);
}

function row(each) {
  const treemaps = report.engines.map((engine) => {
    const treemap = make("div", "treemap");
    treemap.setAttribute("role", "group");
    treemap.setAttribute("aria-label", `${each.title} on ${engine.name}`);
    return treemap;
  });
  const count = each.times > 1 ? make("span", "times", ` ${each.times} layers alike, one drawn`) : null;
  const columns = report.engines.map((engine, at) =>
    make("div", "column", make("code", "engine", engine.name), treemaps[at]),
  );
  const element = make("section", "strip", make("h3", "", make("code", "", each.title), count), ...columns);
  return { element, treemaps, places: each.places };
}

/** Lays every strip out for a width in px; areas keep one scale over all strips. */
function place(rows, width) {
  const bytes = rows.reduce((sum, each) => sum + heaviest(each, (spot) => spot.size), 0);
  const high = Math.min(1500, Math.max(340, STRIP * rows.length));
  const scale = bytes > 0 ? (width * high) / bytes : 0;
  const area = (spot) => Math.max(FLOOR, spot.size * scale);
  for (const each of rows) {
    const height = Math.max(40, Math.round(heaviest(each, area, HEAD * 24) / width));
    const items = [...each.places].map(([name, engines]) => ({ name, engines, weight: weight(engines, area) + HEAD * 24 }));
    const placed = squarify(items, { x: 0, y: 0, w: width, h: height });
    each.treemaps.forEach((treemap, engine) => {
      treemap.style.height = `${height}px`;
      for (const [item, box] of placed) treemap.append(moduleBox(item, engine, box, { w: width, h: height }, area));
      treemap.querySelector(".cell")?.setAttribute("tabindex", "0");
    });
  }
}

function heaviest(each, of, extra = 0) {
  return [...each.places.values()].reduce((sum, engines) => sum + weight(engines, of) + extra, 0);
}

/** A module's weight: that on the engine where it is the heaviest, so that it has one place on all. */
function weight(engines, of) {
  return Math.max(...engines.map((list) => (list ?? []).reduce((sum, spot) => sum + of(spot), 0)));
}

function moduleBox(item, engine, box, within, area) {
  const list = item.engines[engine];
  const element = make("div", list ? "module" : "module absent");
  put(element, box, within);
  if (!list) {
    element.title = `${item.name}: not on this engine`;
    return element;
  }
  const inner = { x: 0, y: 0, w: Math.max(1, box.w - 4), h: Math.max(1, box.h - 4) };
  const inside = { ...inner };
  if (!list[0].first.module.module_class && !isUnread(list[0].first)) element.classList.add("foreign");
  const named = inner.w >= 44 && inner.h >= 36;
  if (named) {
    const head = make("span", "head", headOf(item.name, inner.w));
    element.append(head);
    inside.y = HEAD;
    inside.h -= HEAD;
  }
  const items = list.map((spot) => ({ spot, weight: area(spot) }));
  for (const [{ spot }, at] of placeCells(items, inside)) element.append(cellButton(spot, at, inner, named));
  return element;
}

function cellButton(spot, box, within, named) {
  const cell = spot.first;
  const state = STATES[cell.state];
  const element = make("button", `cell ${state.id}`);
  element.type = "button";
  element.tabIndex = -1;
  element.setAttribute("aria-label", spoken(spot));
  if (cell.findings.length && cell.state === LOADED) element.classList.add("flagged");
  if (Math.min(box.w, box.h) < 24) element.classList.add("small");
  if (state.letter && box.w >= 11 && box.h >= 12) element.append(make("b", "", state.letter));
  if (box.w >= 34 && box.h >= 15) element.append(make("span", "", named ? labelOf(spot) : headOf(cell.module.name, 0)));
  if (named && box.w >= 54 && box.h >= 34) element.append(make("small", "", byteCount(spot.size)));
  put(element, box, within);
  spots.set(element, spot);
  return element;
}

/** A treemap in which the cells near the floor stand in a column or row of their own, so that none is a sliver. */
function placeCells(items, box) {
  const least = items.filter((item) => item.weight <= 2 * FLOOR);
  const wide = box.w > box.h;
  const side = Math.sqrt(FLOOR);
  const lines = Math.ceil(least.length / Math.max(1, Math.floor((wide ? box.h : box.w) / side)));
  const thick = lines * side;
  if (!least.length || least.length === items.length || thick > (wide ? box.w : box.h) / 2) return squarify(items, box);
  const rest = items.filter((item) => item.weight > 2 * FLOOR);
  const [large, small] = wide
    ? [{ ...box, w: box.w - thick }, { ...box, x: box.x + box.w - thick, w: thick }]
    : [{ ...box, h: box.h - thick }, { ...box, y: box.y + box.h - thick, h: thick }];
  return [...squarify(rest, large), ...squarify(least, small)];
}

/** A module's name, or its last part where the whole does not fit. */
function headOf(name, width) {
  return name.length * 6.3 > width ? name.slice(name.lastIndexOf(".") + 1) : name || "(root)";
}

function labelOf({ first: cell, cells: all, times }) {
  if (all.some((each) => each.label !== cell.label)) return plural(times, "tensor");
  const shards = { 0: "gate", 1: "up" };
  const label = cell.shard === undefined ? cell.label : `${shards[cell.shard] ?? cell.shard} ${cell.label}`;
  return times > 1 ? `${times.toLocaleString("en")} \u00d7 ${label}` : label;
}

/** Places in percent, so that paper of any width shows the same map. */
function put(element, box, within) {
  element.style.left = `${(100 * box.x) / within.w}%`;
  element.style.top = `${(100 * box.y) / within.h}%`;
  element.style.width = `${(100 * box.w) / within.w}%`;
  element.style.height = `${(100 * box.h) / within.h}%`;
}
