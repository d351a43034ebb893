// A treemap: rectangles in a rectangle, their areas as the weights, as square as may be.
// Bruls, Huizing, van Wijk, "Squarified Treemaps", 2000.

/** [{weight, ...}] -> the same items as [item, {x, y, w, h}], the heaviest first. */
function squarify(items, box) {
  const total = items.reduce((sum, item) => sum + item.weight, 0);
  const scale = total > 0 ? (box.w * box.h) / total : 0;
  const queue = items.map((item) => [item, item.weight * scale]).sort((a, b) => b[1] - a[1]);
  const placed = [];
  let free = { ...box };
  let at = 0;
  while (at < queue.length) {
    const side = Math.min(free.w, free.h);
    let end = at;
    let area = 0;
    let worst = Infinity;
    while (end < queue.length) {
      const grown = area + queue[end][1];
      const ratio = worstRatio(queue[at][1], queue[end][1], grown, side);
      if (ratio > worst) break;
      worst = ratio;
      area = grown;
      end += 1;
    }
    free = placeRow(queue.slice(at, end), area, free, placed);
    at = end;
  }
  return placed;
}

function worstRatio(largest, smallest, area, side) {
  const square = side * side;
  return Math.max((square * largest) / (area * area), (area * area) / (square * smallest || 1e-9));
}

/** Puts one row along the shorter side, and gives what is left free. */
function placeRow(row, area, free, placed) {
  const upright = free.w >= free.h;
  const side = upright ? free.h : free.w;
  const thick = side > 0 ? area / side : 0;
  let along = 0;
  for (const [item, size] of row) {
    const length = thick > 0 ? size / thick : 0;
    placed.push([
      item,
      upright
        ? { x: free.x, y: free.y + along, w: thick, h: length }
        : { x: free.x + along, y: free.y, w: length, h: thick },
    ]);
    along += length;
  }
  return upright
    ? { x: free.x + thick, y: free.y, w: free.w - thick, h: free.h }
    : { x: free.x, y: free.y + thick, w: free.w, h: free.h - thick };
}
