"""One look: what lies where now, what is new, what has changed. Never waits for anybody."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from otel_bridge.sources.changing import change
from otel_bridge.sources.files import FileKey, Files, NotRegularError
from otel_bridge.sources.generation import ChangedError, Generation
from otel_bridge.sources.holding import Caps, InUse, cap, is_same, rest, say_removed, settle, wake
from otel_bridge.sources.identity import Checkpoint
from otel_bridge.sources.names import is_log, split
from otel_bridge.sources.notices import NoticeKind
from otel_bridge.sources.places import Scan, Sighting
from otel_bridge.sources.placing import place
from otel_bridge.sources.restoring import gap_notices, restore
from otel_bridge.sources.roster import Candidate, Roster
from otel_bridge.sources.rounds import overtaken
from otel_bridge.sources.starting import Only, Start, Started, begins_at_end, is_left, start_at_end
from otel_bridge.sources.trouble import Trouble

_EXPAND_S = 2.0
"""How often the places themselves are asked for anew: folders that are not there yet, globs, what servers hold open."""
_SETTLE_S = 1.0
_PORTION = 64


class Looker:
    """What has to be remembered from one look to the next; everything about files is in the roster.

    Not thread-safe: the follower's lock is held.
    """

    def __init__(
        self,
        roster: Roster,
        files: Files,
        patterns: Callable[[], Sequence[str]],
        start: Start,
        in_use: InUse,
        caps: Caps,
        only: Only,
        unix_s: Callable[[], float],
    ) -> None:
        self.to_restore: list[Checkpoint] = []
        self.only_asked = False
        self._restored_bases: list[str] = []
        self._roster = roster
        self._files = files
        self._patterns = patterns
        self._start = start
        self._in_use = in_use
        self._caps = caps
        self._only = only
        self._left_to_others: frozenset[str] = frozenset()
        self._were_left: set[FileKey] = set()
        self._unix_s = unix_s
        self._since_s = unix_s()
        self._scan = Scan(files)
        self._expanded_s = self._settled_s = float("-inf")
        self._first = True
        self._open_questions = False
        self._real_keys: dict[FileKey, FileKey] = {}
        self.trouble = Trouble(roster)
        self._missing: list[Checkpoint] = []
        self._denied: set[tuple[str, FileKey]] = set()
        self._turn = 0
        self._unnamed: list[FileKey] = []
        self._touched: set[str] = set()
        self._changed: list[Generation] = []

    def folders(self) -> frozenset[tuple[str, int, int]]:
        """The folders of the places that are there: path, device, inode."""
        return self._scan.present()

    def look(self, now_s: float, changed: Collection[str] | None = None) -> Collection[str]:
        """Look once; the chains (ids) that may have something to give out now, which they had not before.

        `now_s` is monotonic. `changed` are paths that are said to have changed; without it every file is asked, and so
        it is once a second in any case.
        """
        roster = self._roster
        self._touched = set()
        expand_now = now_s - self._expanded_s >= _EXPAND_S
        if expand_now:
            self._expanded_s = now_s
            self._scan.expand([*self._patterns(), *self._restored_bases])
            left = self._only.but()
            self._open_questions = self._open_questions or left != self._left_to_others
            self._left_to_others = left
        settle_now = now_s - self._settled_s >= _SETTLE_S
        # What was denied is tried in every look, and the rest whenever the places may have changed, so that it is found
        # before anybody takes it for something new.
        if self.to_restore and (self._first or expand_now or self._denied):
            self._restore(now_s)
        found, failed, same = self._scan.look(now_s)
        for folder, error in failed.items():
            if not isinstance(error, (FileNotFoundError, NotADirectoryError)):
                self.trouble.note(folder, error)
        for folder in self._scan.folders() - failed.keys():
            self.trouble.over(folder)
        if not same or self._open_questions or roster.waiting or roster.ignored:
            unknown = self._note(found, failed, now_s)
        else:
            unknown = []
        self._observe(now_s, frozenset(changed or ()), same=same, settle_now=settle_now)
        for key in self._unnamed:
            roster.stop_ignoring(key)  # a copy that is gone, and whose original was not cut till now
        self._unnamed = []
        self._open_unknown(unknown, now_s)
        if settle_now:
            self._settled_s = now_s
            settle(roster, now_s, self._in_use)
            say_removed(roster)
        cap(roster, now_s, self._caps)
        if self._missing:
            roster.notices += gap_notices(roster, self._missing)
            self._missing = []
        self._first = False
        return roster.chains if settle_now else self._touched

    def _restore(self, now_s: float) -> None:
        """Go on with the logs of the checkpoints that are due; the others wait until they are asked for."""
        due = self.to_restore
        if self.only_asked:
            due = [saved for saved in due if self._scan.covers(saved.base) or self._scan.covers(saved.path)]
        else:
            # They are followed on, wherever they lie: what a running server held open may have no server now.
            bases = dict.fromkeys(saved.base for saved in due if is_log(split(saved.base)[1]))
            self._restored_bases += [base for base in bases if base not in self._restored_bases]
            self._scan.expand([*self._patterns(), *self._restored_bases])
        later = [saved for saved in self.to_restore if saved not in due]
        restored = restore(self._roster, self._files, due, self._scan.folders(), now_s)
        self._missing, self.to_restore = restored.missing, [*later, *restored.denied]
        self._denied = {(split(saved.path)[0], saved.key) for saved in restored.denied}

    def _note(self, found: Sequence[Sighting], failed: Mapping[str, OSError], now_s: float) -> list[Sighting]:
        """Note the names of known files; give back the sightings of unknown ones."""
        roster = self._roster
        unknown: dict[FileKey, Sighting] = {}
        named: set[FileKey] = set()
        for sighting in found:
            key = self._real_keys.get(sighting.key, sighting.key)
            known = roster.by_key.get(key)
            if known is not None and known.resting and not is_same(self._files, known, sighting.path):
                roster.give_up(known)
                known = None
            # Of several names of one file the one that it had stays.
            if key in named and (known is None or sighting.path != known.path):
                continue
            named.add(key)
            if known is not None:
                roster.named(known, sighting.path)
            elif (waiting := roster.waiting.get(key)) is not None:
                waiting.path, waiting.own = sighting.path, sighting.own
            elif (split(sighting.path)[0], key) in self._denied:
                self.trouble.note(sighting.path, PermissionError(errno.EACCES, os.strerror(errno.EACCES)))
            elif is_left(sighting.path, self._left_to_others):
                self._were_left.add(key)
            elif not self._is_ignored(key, sighting.path):
                unknown[key] = sighting
        for generation in roster.by_id.values():
            lost_name = generation.key not in named and split(generation.path)[0] not in failed
            if lost_name and generation.absent_since_s is None:
                generation.absent_since_s = now_s
        self._unnamed = [key for key in roster.ignored if key not in named]
        self._open_questions = bool(unknown) or bool(self._denied)
        return list(unknown.values())

    def _is_ignored(self, key: FileKey, path: str) -> bool:
        """Whether the file was found not to be read, and is as it was then (else it is judged anew)."""
        ignored = self._roster.ignored.get(key)
        if ignored is None:
            return False
        try:
            if replace(ignored, path=path).is_as_it_was(self._files):
                return True
        except OSError:
            return True
        self._roster.stop_ignoring(key)
        return False

    def _open_unknown(self, unknown: Sequence[Sighting], now_s: float) -> None:
        """Open what is new and put it where it belongs, in portions, so that a folder full of logs exhausts nothing.

        This comes after known files were observed: a copy is told by what is known of its original at this moment.
        """
        roster = self._roster
        started = Started()
        for begin in range(0, max(1, len(unknown)), _PORTION):
            opened = [self._open(sighting, now_s) for sighting in unknown[begin : begin + _PORTION]]
            candidates = [*roster.waiting.values(), *(candidate for candidate in opened if candidate is not None)]
            known_chains = frozenset(roster.chains)
            placed = place(roster, candidates, now_s, self.trouble.note)
            roster.notices += overtaken(roster, placed)
            for generation in placed:
                self._observe_one(generation, now_s)
                self._touched.add(generation.chain)
                if generation.chain not in known_chains:
                    self._begin(generation, started)
                elif not self._left(generation):
                    text = f"{generation.base} was rotated; going on with the new {generation.path}"
                    roster.say(NoticeKind.ROTATED, generation, text)
            rest(roster, now_s, self._caps.open_files)
        if (notice := started.notice()) is not None:
            roster.notices.append(notice)

    def _open(self, sighting: Sighting, now_s: float) -> Candidate | None:
        try:
            handle = self._files.open(sighting.path)
        except (FileNotFoundError, NotRegularError):
            return None
        except OSError as error:
            self.trouble.note(sighting.path, error)
            return None
        self.trouble.over(sighting.path)
        found = handle.stat()
        if found.key.device != sighting.key.device:
            # Layered file systems number files otherwise than their folders.
            self._real_keys[sighting.key] = found.key
        if self._only.owner is not None and found.owner != self._only.owner:
            self._roster.ignore(sighting.path, found, handle)
            return None
        known = self._roster.by_key.get(found.key)
        if known is not None:
            # The name went to another file since the listing, or is a mount of its own.
            self._roster.named(known, sighting.path)
        if known is not None or found.key in self._roster.waiting:
            handle.close()
            return None
        return Candidate(sighting.path, found.key, handle, found, sighting.own, now_s, early=self._first)

    def _begin(self, generation: Generation, started: Started) -> None:
        """Decide where the first file of a new log is begun."""
        assert generation.handle is not None
        try:
            at_end = begins_at_end(
                self._start,
                generation.handle.stat().modified_ns / 1e9,
                in_use=self._start is Start.AUTO and self._in_use(generation.key) is True,
                first_look=self._first,
                since_s=self._since_s,
                now_s=self._unix_s(),
            )
            if at_end or generation.key in self._were_left:
                start_at_end(generation)
                started.end.append(generation.path)
            else:
                started.beginning += 1
        except OSError as error:
            self.trouble.note(generation.path, error)

    def _observe(self, now_s: float, changed: Collection[str], *, same: bool, settle_now: bool) -> None:
        """Ask files for their size, and find out where the bytes went of those that are not what they were."""
        roster = self._roster
        generations = list(roster.by_id.values())
        chosen = [found for found in generations if found.path in changed]
        ask_all = settle_now or not same or not chosen
        for generation in generations if ask_all else chosen:
            # What has no name any more can grow by a second writer only.
            if generation.handle is not None and (generation.links or settle_now or not self._left(generation)):
                self._observe_one(generation, now_s)
        resting = [generation for generation in chosen if generation.resting]
        if ask_all:
            # Of very many quiet files only some are asked each time, beside those that are said to have changed.
            quiet = [generation for generation in generations if generation.resting and generation.path not in changed]
            self._turn = self._turn + _PORTION if self._turn + _PORTION < len(quiet) else 0
            resting += quiet[self._turn : self._turn + _PORTION]
        for generation in resting:
            self._wake(generation, now_s)
        # Rewritten copies first: one of them may hold what was cut from its original.
        for generation in sorted(self._changed, key=lambda found: found.path == found.base):
            self._touched.add(generation.chain)
            try:
                change(roster, self._files, generation, now_s)
            except OSError as error:
                self.trouble.note(generation.path, error)
        self._changed.clear()

    def _wake(self, generation: Generation, now_s: float) -> None:
        try:
            if wake(self._files, generation):
                self._observe_one(generation, now_s)
        except FileNotFoundError:
            pass  # it has lost its name; the next listing says so
        except OSError as error:
            self.trouble.note(generation.path, error)

    def _observe_one(self, generation: Generation, now_s: float) -> None:
        roster = self._roster
        try:
            if generation.observe(now_s):
                roster.unsaved[generation.id] = generation
                self._touched.add(generation.chain)
        except ChangedError:
            self._changed.append(generation)
        except OSError as error:
            self.trouble.note(generation.path, error)
        else:
            self.trouble.over(generation.path)
        if generation.cut_bytes:
            lost_bytes, generation.cut_bytes = generation.cut_bytes, 0
            text = f"{generation.path} became shorter: its last {lost_bytes} bytes were not read and are lost"
            roster.say(NoticeKind.TRUNCATED, generation, text, lost_bytes)

    def _left(self, generation: Generation) -> bool:
        return self._roster.chains[generation.chain].left(generation)
