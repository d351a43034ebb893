// Strips: the layers one below another, alike ones as one, and in a strip modules that differ by a number only.

const MOST_LAYERS = 12;
const MOST_CELLS = 1500;
const MOST_NUMBERED = 8;
const MOST_FOREIGN = 200;
const CROWD = "modules that the draft has not";

/** [{title, times, places}] from top to bottom; places: Map place -> for each engine its spots or nothing. */
function stripsOf(folded) {
  const layers = new Map();
  for (const engine of report.engines) {
    for (const module of engine.modules) {
      const layer = layerOf(module);
      if (!layers.has(layer)) layers.set(layer, report.engines.map(() => []));
      layers.get(layer)[engine.index].push(module);
    }
  }
  const groups = new Map();
  for (const [layer, modules] of [...layers].sort(([a], [b]) => layerOrder(a) - layerOrder(b))) {
    const key = folded && layer ? signature(modules) : layer;
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push({ layer, modules });
  }
  return [...groups.values()].map(strip);
}

function layerOrder(layer) {
  return layer ? Number(/[0-9]+$/.exec(layer)[0]) : Infinity;
}

/** Whether folding is the better start: with many layers, or with many cells. */
function foldAtFirst() {
  const layers = new Set(report.engines.flatMap((engine) => engine.modules.map(layerOf)));
  return layers.size > MOST_LAYERS + 1 || cells.length > MOST_CELLS;
}

/** Equal for layers that look the same on every engine. */
function signature(modulesOfEngines) {
  return JSON.stringify(modulesOfEngines.map((modules) => modules.map((m) => [placeOf(m), look(m)])));
}

function look(module) {
  return module.cells.map((cell) => [cell.label, cell.shard, cell.state, cell.size]);
}

function strip(group) {
  const places = new Map();
  group[0].modules.forEach((modules, engine) => {
    const numbered = numberedAlike(modules);
    modules.forEach((module, at) => {
      const place = numbered.get(module) ?? placeOf(module);
      if (!places.has(place)) places.set(place, report.engines.map(() => null));
      const row = places.get(place);
      const alike = group.map((each) => each.modules[engine][at]);
      row[engine] = merged(row[engine] ?? [], spotsOf(alike), place === CROWD);
    });
  });
  return { title: titleOf(group.map((each) => each.layer)), times: group.length, places };
}

/** Module -> the place that it shares: with `*` for a number, where many are then alike, as experts are; or the crowd. */
function numberedAlike(modules) {
  const groups = new Map();
  for (const module of modules) {
    const place = placeOf(module).replace(/[0-9]+/g, "*");
    const key = JSON.stringify([place, look(module)]);
    if (!groups.has(key)) groups.set(key, [place, []]);
    groups.get(key)[1].push(module);
  }
  const found = new Map();
  for (const [place, alike] of groups.values()) {
    if (alike.length > MOST_NUMBERED) alike.forEach((module) => found.set(module, place));
  }
  const foreign = modules.filter((module) => !module.module_class && !found.has(module));
  if (foreign.length > MOST_FOREIGN) foreign.forEach((module) => found.set(module, CROWD));
  return found;
}

/** A spot is what the map shows as one cell: `cells` are all that it stands for, `size` their bytes in one layer. */
function spotsOf(alike) {
  return alike[0].cells.map((cell, at) => ({
    first: cell,
    cells: alike.map((module) => module.cells[at]),
    size: cell.size,
    times: 1,
  }));
}

/** Spots of another module taken in: one by one where the modules are alike, in a crowd by their state. */
function merged(spots, more, crowd) {
  more.forEach((spot, at) => {
    const into = crowd ? spots.find((each) => each.first.state === spot.first.state) : spots[at];
    if (!into) return spots.push(spot);
    into.cells.push(...spot.cells);
    into.size += spot.size;
    into.times += 1;
  });
  return spots;
}

function titleOf(layers) {
  if (!layers[0]) return "outside the layers";
  if (layers.length === 1) return layers[0];
  const stem = layers[0].replace(/[0-9]+$/, "");
  return stem + ranges(layers.map((layer) => Number(/[0-9]+$/.exec(layer)[0])));
}

/** Sorted numbers as a person writes them: 0-4,6. */
function ranges(numbers) {
  const runs = [];
  for (const number of numbers) {
    const last = runs[runs.length - 1];
    if (last && number === last[1] + 1) last[1] = number;
    else runs.push([number, number]);
  }
  return runs.map(([a, b]) => (a === b ? `${a}` : `${a}-${b}`)).join(",");
}
