"""The recorded logs of the real server, see `data/README.md`. Every secret in them is invented."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from tests.calls import Call, Outcome

LOGS = Path(__file__).parent / "data" / "logs"


@dataclass(frozen=True)
class DapTrace:
    """What the server wrote of the debug adapter protocol in one run of one session."""

    session_id: str
    run_ms: int
    data: bytes


@dataclass(frozen=True)
class Recording:
    """One run of the server: its log, the client's record, and its traces of the debug adapter protocol."""

    name: str

    @property
    def folder(self) -> Path:
        """Where its files lie, some of them packed with gzip."""
        return LOGS / self.name

    @cached_property
    def log_files(self) -> tuple[tuple[str, bytes], ...]:
        """Name and bytes of each file of the log, oldest first (`server1.log` before `server.log`)."""
        paths = sorted(self.folder.glob("server*.log*"), key=lambda path: path.name.split(".")[0], reverse=True)
        return tuple((path.name.removesuffix(".gz"), _content(path)) for path in paths)

    @cached_property
    def log(self) -> bytes:
        """The whole log, oldest first."""
        return b"".join(data for _, data in self.log_files)

    @property
    def lines(self) -> list[bytes]:
        """The lines of the whole log, oldest first, each with its newline."""
        return io.BytesIO(self.log).readlines()

    @cached_property
    def calls(self) -> tuple[Call, ...]:
        """The client's own record, in the order of sending."""
        (path,) = self.folder.glob("calls.json*")
        return tuple(map(_call, json.loads(_content(path))))

    @cached_property
    def dap_traces(self) -> tuple[DapTrace, ...]:
        """Its traces of the debug adapter protocol, oldest first."""
        paths = self.folder.glob("sessions/*/run-*/dap-trace-*.ndjson*")
        traces = [DapTrace(path.parts[-3], int(path.parts[-2].removeprefix("run-")), _content(path)) for path in paths]
        return tuple(sorted(traces, key=lambda trace: trace.run_ms))

    def unpack(self, folder: Path) -> list[Path]:
        """Writes the log's files into `folder`, under the names they had; returns their paths, oldest first."""
        written = []
        for name, data in self.log_files:
            (folder / name).write_bytes(data)
            written.append(folder / name)
        return written


def recordings() -> Iterator[Recording]:
    """Every recording, by name."""
    for folder in sorted(LOGS.iterdir()):
        yield Recording(folder.name)


RECORDINGS = tuple(recordings())


def recording(name: str) -> Recording:
    """The recording of that name; KeyError when there is none."""
    for found in RECORDINGS:
        if found.name == name:
            return found
    raise KeyError(name)


def _content(path: Path) -> bytes:
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


def _call(record: Mapping[str, Any]) -> Call:
    return Call(
        seq=record["seq"],
        tool=record["tool"],
        session_id=record["sessionId"],
        arguments=record["args"],
        start_ms=record["t_start"],
        end_ms=record["t_end"],
        outcome=Outcome(record["outcome"]),
        success=record["success"],
        created_session_id=record.get("resultSessionId"),
        payload=record.get("payload", ""),
        error=record.get("error", {}).get("message", ""),
    )
