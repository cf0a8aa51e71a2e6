"""Values that are made by the hundred thousand: one for each line of a log, or more.

A frozen dataclass takes three to four times as long to make as a plain one, since it sets each field through
`object.__setattr__`; of a log's backfill that was a tenth. `value` is frozen where it matters: mypy sees the dataclass
that it says it is, and refuses every assignment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataclasses import dataclass as value
else:
    from dataclasses import dataclass

    def value(*, frozen, slots):
        """The decorator for a value class; to be given `frozen=True, slots=True`, which is what the checker takes."""
        assert frozen
        assert slots
        return dataclass(slots=True, unsafe_hash=True)


__all__ = ["value"]
