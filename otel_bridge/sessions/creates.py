"""`create_debug_session`: calls that make a session, and have no session id in call or response."""

from __future__ import annotations

from dataclasses import dataclass, field

from otel_bridge.entries.entry import Entry
from otel_bridge.sessions.calls import OpenCall


@dataclass(slots=True)
class PendingCreate:
    """A create call in flight: what it asked for, and the session it made, once that is known."""

    call: OpenCall
    name: str | None
    language: str | None
    session_id: str | None = None
    attaches: bool = False
    """Whether it also attaches: then its response is not the next one after `session:created`."""

    def to_json(self) -> dict[str, object]:
        """The create as JSON values. A call that joined its session is saved with that session."""
        call = None if self.session_id else self.call.to_json()
        return {
            "call": call,
            "number": self.call.number,
            "name": self.name,
            "language": self.language,
            "session_id": self.session_id,
            "attaches": self.attaches,
        }


@dataclass(slots=True)
class PendingCreates:
    """The create calls in flight, in the order of the log.

    With several at once the order of calls is not the order of sessions; the name tells them apart, and names collide.
    """

    waiting: list[PendingCreate] = field(default_factory=list)

    def open(self, entry: Entry, call: OpenCall) -> None:
        """A create call begins."""
        request = entry.fields.get("request")
        asked = request if isinstance(request, dict) else {}
        name, language = asked.get("name"), asked.get("language")
        attaches = "port" in asked or "host" in asked or "processId" in asked
        self.waiting.append(
            PendingCreate(
                call,
                name if isinstance(name, str) and name else None,
                language if isinstance(language, str) else None,
                attaches=attaches,
            )
        )

    def created(self, entry: Entry, session_id: str) -> OpenCall | None:
        """The create call that made this session: by name, else the oldest that gave none."""
        open_creates = [create for create in self.waiting if create.session_id is None]
        language = entry.fields.get("language")
        name = entry.fields.get("sessionName")
        ranked = (
            [create for create in open_creates if create.name == name and create.language == language]
            or [create for create in open_creates if create.name == name]
            or [create for create in open_creates if create.name is None and create.language == language]
            or [create for create in open_creates if create.name is None]
        )
        if not ranked:
            return None
        ranked[0].session_id = session_id
        return ranked[0].call

    def answered(self, *, is_error: bool) -> PendingCreate | None:
        """The create that an answer belongs to.

        A response comes directly after its `session:created`, unless the create also attaches; an error comes from a
        create that made no session, or could not attach.
        """
        made = [create for create in self.waiting if create.session_id is not None]
        direct = [create for create in made if not create.attaches]
        unmade = [create for create in self.waiting if create.session_id is None]
        attaching = [create for create in made if create.attaches]
        ranked = [*unmade, *attaching, *direct] if is_error else [*direct[::-1], *attaching, *unmade]
        if not ranked:
            return None
        self.waiting.remove(ranked[0])
        return ranked[0]

    def forget_session(self, session_id: str) -> None:
        """The session is over, and with it the create call that was in flight in it."""
        self.waiting = [create for create in self.waiting if create.session_id != session_id]

    def take_unmade(self, before_ms: int | None = None) -> list[OpenCall]:
        """Removes and gives back the calls that made no session and began by `before_ms`; None: all of them."""
        unmade = [
            create
            for create in self.waiting
            if create.session_id is None and (before_ms is None or create.call.span.start_ms <= before_ms)
        ]
        self.waiting = [create for create in self.waiting if create not in unmade]
        return [create.call for create in unmade]
