"""What the bridge's own processes do without."""

from __future__ import annotations

import sys
import warnings

_CHARACTER_DETECTION = ("chardet", "charset_normalizer")


def leave_out_character_detection() -> None:
    """To be called before `requests` is imported, in a process that is ours alone.

    `requests` imports a library that guesses encodings, 2.7 MB resident, and takes UTF-8 where there is none. We ask
    for no guess: a backend's answer is protobuf, JSON, or text that is read as UTF-8.
    """
    for name in _CHARACTER_DETECTION:
        sys.modules.setdefault(name, None)  # type: ignore[arg-type]  # the import system's sign for "not there"
    warnings.filterwarnings("ignore", "Unable to find acceptable character detection")
