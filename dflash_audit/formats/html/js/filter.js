// What is shown in full: cells that match the search, the chosen states and the chosen finding.

const search = document.getElementById("search");
const matches = document.getElementById("matches");
const states = [...document.querySelectorAll(".legend .state")];
const articles = [...document.querySelectorAll("[data-finding]")];
const chosen = new Set();
let finding = null;

function textOf(cell) {
  cell.text ??= [targetOf(cell), cell.dtype, cell.module.module_class, cell.module.prefix, cell.module.scheme,
    STATES[cell.state].word, ...cell.sources.flat()].join(" ").toLowerCase();
  return cell.text;
}

function matchesAll(cell, words, only) {
  return (
    (!chosen.size || chosen.has(cell.state)) &&
    (only === null || cell.findings.includes(only)) &&
    words.every((word) => textOf(cell).includes(word))
  );
}

function filter(only = finding) {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  const all = !words.length && !chosen.size && only === null;
  for (const [element, spot] of spots) {
    element.classList.toggle("dim", !all && !spot.cells.some((cell) => matchesAll(cell, words, only)));
  }
  const found = all ? cells.length : cells.filter((cell) => matchesAll(cell, words, only)).length;
  matches.textContent = all ? plural(cells.length, "cell") : `${found.toLocaleString("en")} of ${plural(cells.length, "cell")}`;
}

function clearFilter() {
  if (!search.value && !chosen.size && finding === null) return false;
  search.value = "";
  chosen.clear();
  selectFinding(null);
  return true;
}

function selectFinding(index) {
  finding = index;
  for (const article of articles) {
    const mine = Number(article.dataset.finding) === index && index !== null;
    article.classList.toggle("selected", mine);
    article.querySelector(".show")?.setAttribute("aria-pressed", String(mine));
  }
  states.forEach((each) => each.setAttribute("aria-pressed", String(chosen.has(Number(each.dataset.state)))));
  filter();
}

function firstMatch() {
  return [...spots.keys()].find((element) => !element.classList.contains("dim"));
}

search.addEventListener("input", () => filter());
for (const each of states) {
  const state = Number(each.dataset.state);
  const number = cells.filter((cell) => cell.state === state).length;
  each.querySelector("b").textContent = number.toLocaleString("en");
  each.hidden = number === 0;
  each.addEventListener("click", () => {
    if (!chosen.delete(state)) chosen.add(state);
    selectFinding(finding);
  });
}
const numbers = report.findings.map(() => 0);
cells.forEach((cell) => cell.findings.forEach((index) => (numbers[index] += 1)));
for (const article of articles) {
  const index = Number(article.dataset.finding);
  const number = numbers[index];
  if (!number) continue;
  const show = button("show", `Show ${plural(number, "cell")}`, () => {
    selectFinding(finding === index ? null : index);
    if (finding !== null) firstMatch()?.scrollIntoView({ block: "nearest" });
  });
  show.setAttribute("aria-pressed", "false");
  article.append(show);
  article.addEventListener("pointerenter", () => filter(index));
  article.addEventListener("pointerleave", () => filter());
}
