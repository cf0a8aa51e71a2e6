"""Where to look: the paths, folders and globs that a person gave, and the names that lie there now."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from glob import glob
from pathlib import Path

from otel_bridge.sources.files import FileKey, Files, Name, is_file, is_folder
from otel_bridge.sources.names import COMPRESSED, is_log, join, rotations, split

_MAGIC = re.compile(r"[*?\[]")
_SETTLED_S = 0.1
"""How long a folder's time stamp must have stood still to prove that no name changed (clocks of file systems tick every
4 to 10 ms, so that two changes can carry the same time)."""
_TRIES = 3
_LIST_ANYWAY_S = 5.0
"""How often a folder is listed whatever its time stamp says: some network file systems do not keep it."""


@dataclass(frozen=True, slots=True)
class Place:
    """One folder and the names in it that are meant; `key` tells one place from another."""

    folder: str
    key: tuple[str, str]
    means: Callable[[str], bool]

    def covers(self, name: str) -> bool:
        """Whether the file is meant itself, or can be a rotated part of one that is."""
        return self.means(name) or any(self.means(root) for root, _ in rotations(name))


@dataclass(frozen=True, slots=True)
class Sighting:
    """A file that lies where someone said to look. `own` is false for one that only matters as part of another log."""

    path: str
    key: FileKey
    own: bool


def _named(name: str) -> Callable[[str], bool]:
    return lambda other: other == name


def _like(pattern: str) -> Callable[[str], bool]:
    matches = re.compile(fnmatch.translate(pattern)).match
    return lambda other: matches(other) is not None


def expand(patterns: Iterable[str]) -> tuple[Place, ...]:
    """The places that paths, folders and globs mean now; what is not there yet is taken for a file to come.

    A symbolic link means the file that it points to, in the folder where that one is rotated.
    """
    places: dict[tuple[str, str], Place] = {}
    for pattern in patterns:
        path = Path(pattern).expanduser().absolute()
        folder, name = split(str(path))
        if is_folder(path):
            places[str(path), ""] = Place(str(path), (str(path), ""), is_log)
        elif _MAGIC.search(pattern) and not is_file(path):
            for found in sorted(glob(folder, recursive=True)) if _MAGIC.search(folder) else [folder]:  # noqa: PTH207
                places[found, name] = Place(found, (found, name), _like(name))
        else:
            folder, name = split(_target(path))
            places[folder, name] = Place(folder, (folder, name), _named(name))
    return tuple(places.values())


def _target(path: Path) -> str:
    """What the last name of a path means; itself where that cannot be told (a link to itself, a closed folder)."""
    try:
        return str(path.resolve()) if path.is_symlink() else str(path)
    except (OSError, RuntimeError):
        return str(path)


@dataclass(frozen=True, slots=True)
class _Listing:
    """`stamp` is the folder's own number and time stamp, `changed_s` when that was first seen."""

    stamp: tuple[FileKey, int]
    changed_s: float
    listed_s: float
    names: list[Name]


class Scan:
    """What lies in the places, listed anew only where something can have changed."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._places: tuple[Place, ...] = ()
        self._listings: dict[str, _Listing] = {}
        self._found: list[Sighting] | None = None

    def expand(self, patterns: Iterable[str]) -> None:
        """Take the places from the patterns anew."""
        places = expand(patterns)
        if [place.key for place in places] != [place.key for place in self._places]:
            self._places = places
            self._listings = {}

    def covers(self, path: str) -> bool:
        """Whether a file there is meant, or can be a rotated part of one that is."""
        folder, name = split(path)
        return any(place.folder == folder and place.covers(name) for place in self._places)

    def folders(self) -> frozenset[str]:
        """The folders of all places, whether they are there or not."""
        return frozenset(place.folder for place in self._places)

    def present(self) -> frozenset[tuple[str, int, int]]:
        """The folders that are there: path, device, inode."""
        there = set()
        for folder in self.folders():
            with suppress(OSError):
                there.add((folder, *self._files.stat(folder or "/").key))
        return frozenset(there)

    def look(self, now_s: float) -> tuple[Sequence[Sighting], Mapping[str, OSError], bool]:
        """The files that lie in the places now, the folders that cannot be listed, and whether all is as before.

        Packed files are left out: what they hold was in a plain file before.
        """
        failed: dict[str, OSError] = {}
        same = self._found is not None
        for folder in self.folders():
            try:
                same = self._list(folder, now_s) and same
            except OSError as error:
                failed[folder] = error
                same = self._listings.pop(folder, None) is None and same
        # What a link points to can change without a trace in the folder.
        linked = any(name.inode is None for listing in self._listings.values() for name in listing.names)
        if not same or linked or self._found is None:
            self._found = self._sightings()
        return self._found, failed, same and not linked

    def _list(self, folder: str, now_s: float) -> bool:
        """List a folder if need be; whether nothing has changed. Raises OSError as the system says."""
        found = self._files.stat(folder or "/")
        known = self._listings.get(folder)
        stamp = (found.key, found.modified_ns)
        if known is not None and known.stamp == stamp:
            settled = known.listed_s - known.changed_s >= _SETTLED_S
            if settled and now_s - known.listed_s < _LIST_ANYWAY_S:
                return True
        changed_s = known.changed_s if known is not None and known.stamp == stamp else now_s
        names = self._files.list(folder or "/")
        for _ in range(_TRIES):
            # A listing is not one moment: a name that is renamed meanwhile can be missed, so none may have been.
            after = self._files.stat(folder or "/")
            if (after.key, after.modified_ns) == stamp:
                break
            stamp = (after.key, after.modified_ns)
            names = self._files.list(folder or "/")
        same = known is not None and known.stamp[0] == stamp[0] and known.names == names
        self._listings[folder] = _Listing(stamp, changed_s, now_s, names)
        return same

    def _sightings(self) -> list[Sighting]:
        seen: dict[str, Sighting] = {}
        for place in self._places:
            listing = self._listings.get(place.folder)
            for name, inode in () if listing is None else listing.names:
                if name.endswith(COMPRESSED) or not place.covers(name):
                    continue
                path = join(place.folder, name)
                own = place.means(name)
                if (known := seen.get(path)) is not None:
                    seen[path] = Sighting(path, known.key, known.own or own)
                elif inode is not None and listing is not None:
                    seen[path] = Sighting(path, FileKey(listing.stamp[0].device, inode), own)
                else:
                    try:
                        seen[path] = Sighting(path, self._files.stat(path).key, own)
                    except OSError:
                        continue  # a link to nothing
        return list(seen.values())
