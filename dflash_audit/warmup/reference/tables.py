"""Looking up rows of tables by token ids, which are checked first."""

from dataclasses import dataclass, field

import torch
import torch.nn.functional as F


@dataclass(slots=True)
class Tables:
    """Notes ids that lie outside a table in `out_of_range` and takes the nearest row for them.

    Without `guard` they index as they are, as in the engine: on a GPU that is a
    device-side assert.
    """

    guard: bool = True
    out_of_range: list[tuple[str, int, int]] = field(default_factory=list)

    def look_up(self, name: str, table: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
        """[rows, width] by [...] -> [..., width]; `name` is what the table is called in a report."""
        return F.embedding(self.checked(name, table.shape[0], ids), table)

    def checked(self, name: str, rows: int, ids: torch.Tensor) -> torch.Tensor:
        if not self.guard or not ids.numel():
            return ids
        outside = ids[(ids < 0) | (ids >= rows)]
        if outside.numel():
            self.out_of_range += [(name, int(token), rows) for token in outside.unique().tolist()]
        return ids.clamp(0, rows - 1)
