// Shows the map, and draws it again for another width.

const fold = document.getElementById("fold");

function redraw() {
  closeInspector();
  draw();
  filter();
}

function showFold() {
  fold.textContent = folded ? "Unfold alike layers" : "Fold alike layers";
}

fold.hidden = stripsOf(true).length === stripsOf(false).length;
fold.addEventListener("click", () => {
  folded = !folded;
  showFold();
  redraw();
});

/** How the bytes of an engine are shared out among the states, as a bar under its verdict. */
for (const share of document.querySelectorAll(".share")) {
  const engine = Number(share.dataset.engine);
  STATES.forEach((state, index) => {
    const size = cells
      .filter((cell) => cell.module.engine.index === engine && cell.state === index)
      .reduce((sum, cell) => sum + cell.size, 0);
    if (!size) return;
    const part = make("i", `swatch ${state.id}`);
    part.style.flexGrow = String(size);
    part.title = `${state.word}: ${byteCount(size)}`;
    share.append(part);
  });
}
for (const stage of document.querySelectorAll("[data-seconds]")) {
  stage.style.flexGrow = String(Math.max(1, Math.sqrt(Number(stage.dataset.seconds) * 1000)));
}

const section = document.getElementById("map-section");
if (section) {
  section.hidden = false;
  document.getElementById("table").open = false;
  showFold();
  redraw();
  let width = map.clientWidth;
  new ResizeObserver(() => {
    if (Math.abs(map.clientWidth - width) < 2 || matchMedia("print").matches) return;
    width = map.clientWidth;
    requestAnimationFrame(redraw);
  }).observe(map);
}
