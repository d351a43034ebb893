// Elements and words. Whatever comes out of the report goes in as text, never as markup.

function make(tag, className, ...children) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  element.append(...children.filter((child) => child !== null));
  return element;
}

function button(className, text, action) {
  const element = make("button", className, text);
  element.type = "button";
  element.addEventListener("click", action);
  return element;
}

function byteCount(number) {
  let size = number;
  for (const unit of ["B", "kB", "MB"]) {
    if (size < 1000) return unit === "B" ? `${size} B` : `${size.toFixed(1)} ${unit}`;
    size /= 1000;
  }
  return `${size.toFixed(2)} GB`;
}

function shapeOf(shape) {
  return shape.length ? shape.join(" \u00d7 ") : "scalar";
}

function plural(number, word) {
  return `${number.toLocaleString("en")} ${word}${number === 1 ? "" : "s"}`;
}

/** What a spot is, as [term, words] pairs: the tooltip and the inspector show the same. */
function facts(spot) {
  const cell = spot.first;
  const module = cell.module;
  const sources = cell.tensor
    ? []
    : spot.cells.flatMap((each) => each.sources).map(([name, dtype, shape]) => `${name}  ${dtype} ${shapeOf(shape)}`);
  return [
    ["state", STATES[cell.state].word + (cell.note ? `: ${cell.note}` : "")],
    ["shape", shapeOf(cell.shape)],
    ["dtype", cell.dtype],
    ["size", sizeOf(spot)],
    ["module", `${module.name || "(root)"} (${module.module_class ?? (isUnread(cell) ? "not built" : "not in the draft")})`],
    ["prefix asked", module.prefix ?? (module.module_class ? "nobody asks" : "")],
    ["scheme", module.scheme ?? ""],
    [cell.tensor ? "" : "from", listed(sources, 4)],
  ].filter(([term, words]) => term && words);
}

function nameOf(spot) {
  const more = spot.cells.length - 1;
  return more ? `${targetOf(spot.first)} and ${more.toLocaleString("en")} more` : targetOf(spot.first);
}

function sizeOf(spot) {
  const size = byteCount(spot.cells.reduce((sum, cell) => sum + cell.size, 0));
  return spot.cells.length > 1 ? `${size} in ${plural(spot.cells.length, "cell")}` : size;
}

function isUnread(cell) {
  return STATES[cell.state].id === "unread";
}

function listed(lines, most) {
  const shown = lines.slice(0, most).join("\n");
  return lines.length > most ? `${shown}\nand ${plural(lines.length - most, "more")}`.replace("mores", "more") : shown;
}

function factList(spot) {
  const list = make("dl", "facts");
  for (const [term, words] of facts(spot)) list.append(make("dt", "", term), make("dd", "", words));
  return list;
}

/** One line for those who hear the map. */
function spoken(spot) {
  const cell = spot.first;
  return `${nameOf(spot)}, ${STATES[cell.state].word}, ${cell.dtype}, ${sizeOf(spot)}`;
}
