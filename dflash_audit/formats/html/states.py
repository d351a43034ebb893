"""What can become of a cell of the map, as a table: the legend, the colours and the words."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class State:
    """`id` is its class in page.css, `letter` stands in its cells, `meaning` is a sentence of the legend."""

    id: str
    letter: str
    word: str
    meaning: str


REFUSED: Final = State("refused", "R", "refused", "a tensor that the engine refuses: it stops here")
DROPPED: Final = State("dropped", "D", "dropped", "a tensor that goes nowhere")
UNFILLED: Final = State("unfilled", "U", "unfilled", "a parameter that nothing fills")
LOSSY: Final = State("lossy", "C", "cast, lossy", "filled by a cast that loses what the numbers mean")
RESIZED: Final = State("resized", "S", "resized", "took in another amount of numbers than it holds")
IGNORED: Final = State("ignored", "I", "ignored", "a tensor that goes nowhere, and may")
OWN: Final = State("own", "O", "own value", "nothing fills it, and it holds a right value of its own")
UNREAD: Final = State("unread", "N", "not reached", "a tensor on disk; the engine does not get as far")
LOADED: Final = State("loaded", "", "loaded", "filled from the checkpoint")

STATES: Final = (REFUSED, DROPPED, UNFILLED, LOSSY, RESIZED, IGNORED, OWN, UNREAD, LOADED)
"""From the worst down."""
