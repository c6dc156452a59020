"""What one of several processes gets of what is limited for all of them together. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Share:
    """Processes share no memory, so that each keeps to its part."""

    place: int = 0
    """Which of the processes it is, from 0."""
    of: int = 1

    def part(self, total: int) -> int:
        """The parts add up to the total, or to one for each where that is more."""
        each, left = divmod(total, self.of)
        return max(each + (self.place < left), 1)
