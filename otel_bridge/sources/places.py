"""Where to look: the paths, folders and globs that a person gave, and the names that lie there now."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from glob import glob
from pathlib import Path

from otel_bridge.sources.files import FileKey, Files, Name
from otel_bridge.sources.names import COMPRESSED, is_log, join, rotations, split

_MAGIC = re.compile(r"[*?\[]")
_SETTLED_S = 0.1
"""How long a folder's time stamp must have stood still to prove that no name changed (clocks of file systems tick every
4 to 10 ms, so that two changes can carry the same time)."""
_LIST_ANYWAY_S = 5.0
"""How often a folder is listed whatever its time stamp says: some network file systems do not keep it."""


@dataclass(frozen=True, slots=True)
class Place:
    """One folder and the names in it that are meant."""

    folder: str
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
        if path.is_dir():
            places[str(path), ""] = Place(str(path), is_log)
        elif _MAGIC.search(pattern) and not path.exists():
            for found in sorted(glob(folder, recursive=True)) if _MAGIC.search(folder) else [folder]:  # noqa: PTH207
                places[found, name] = Place(found, _like(name))
        else:
            folder, name = split(str(path.resolve()) if path.is_symlink() else str(path))
            places[folder, name] = Place(folder, _named(name))
    return tuple(places.values())


@dataclass(slots=True)
class _Listing:
    modified_ns: int
    device: int
    changed_s: float
    listed_s: float
    names: list[Name]


class Folders:
    """The names in the folders, asked for again only where something can have changed."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._listings: dict[str, _Listing] = {}

    def names(self, folder: str, now_s: float) -> tuple[int, Sequence[Name]]:
        """The folder's device and the names in it. Raises OSError as the system says."""
        found = self._files.stat(folder)
        known = self._listings.get(folder)
        same = known is not None and (known.modified_ns, known.device) == (found.modified_ns, found.key.device)
        if known is not None and same:
            settled = known.listed_s - known.changed_s >= _SETTLED_S
            if settled and now_s - known.listed_s < _LIST_ANYWAY_S:
                return known.device, known.names
        changed_s = known.changed_s if known is not None and same else now_s
        # A listing is not one moment: a name that is renamed meanwhile can be missed, but then the time stamp moves.
        names = self._files.list(folder)
        self._listings[folder] = _Listing(found.modified_ns, found.key.device, changed_s, now_s, names)
        return found.key.device, names

    def forget(self, folder: str) -> None:
        """List the folder anew when it is asked for next."""
        self._listings.pop(folder, None)


def sightings(
    places: Sequence[Place], folders: Folders, files: Files, now_s: float
) -> tuple[list[Sighting], dict[str, OSError]]:
    """The files that lie in the places now, and the folders that cannot be listed.

    Packed files are left out: what they hold was in a plain file before.
    """
    seen: dict[str, Sighting] = {}
    failed: dict[str, OSError] = {}
    for place in places:
        if place.folder in failed:
            continue
        try:
            device, names = folders.names(place.folder, now_s)
        except OSError as error:
            failed[place.folder] = error
            continue
        for name, inode in names:
            if name.endswith(COMPRESSED) or not place.covers(name):
                continue
            path = join(place.folder, name)
            own = place.means(name)
            if (known := seen.get(path)) is not None:
                seen[path] = Sighting(path, known.key, known.own or own)
            elif inode is not None:
                seen[path] = Sighting(path, FileKey(device, inode), own)
            else:
                try:
                    seen[path] = Sighting(path, files.stat(path).key, own)
                except OSError:
                    continue  # a link to nothing
    return list(seen.values()), failed
