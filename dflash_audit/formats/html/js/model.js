// The report's cells, each knowing its engine and its module.

const report = JSON.parse(document.getElementById("report").textContent);
const STATES = report.states;
const LOADED = STATES.findIndex((state) => state.id === "loaded");
const LAYER = /^(?:.*?\.)?layers\.(?:0|[1-9][0-9]*)(?=\.|$)/;

/** All cells of all engines, in the order of the report. */
const cells = [];

report.engines.forEach((engine, index) => {
  engine.index = index;
  for (const module of engine.modules) {
    module.engine = engine;
    for (const cell of module.cells) {
      cell.module = module;
      cell.findings ??= [];
      cell.sources ??= cell.tensor ? [[cell.name, cell.dtype, cell.shape]] : [];
      cells.push(cell);
    }
  }
});

/** The strip that a module is in: its layer, or "" for what stands before and after the layers. */
function layerOf(module) {
  return LAYER.exec(module.name)?.[0] ?? "";
}

/** What stands behind the layer in a module's name. */
function placeOf(module) {
  const layer = layerOf(module);
  return layer ? module.name.slice(layer.length + 1) : module.name;
}

/** A cell's name with its shard, as findings write it. */
function targetOf(cell) {
  return cell.shard === undefined || cell.tensor ? cell.name : `${cell.name}[${cell.shard}]`;
}

/** The cells of other engines that take in the same tensors, or are the same parameter. */
function twins(cell) {
  const tensors = new Set(cell.sources.map((source) => source[0]));
  return cells.filter(
    (other) =>
      other.module.engine !== cell.module.engine &&
      (targetOf(other) === targetOf(cell) || other.sources.some((source) => tensors.has(source[0]))),
  );
}
