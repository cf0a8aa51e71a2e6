"""Where the containers' addresses and paths are on this machine: every address becomes a free port of loopback."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from tests.real.ports import reserve_port

OWN = ("0.0.0.0", "127.0.0.1", "localhost")
"""Hosts that mean the container itself."""


class Places:
    """Ports for (service, port of its container), the same for whoever asks, and texts rewritten to them."""

    def __init__(self, networks: Mapping[str, str]) -> None:
        """`networks` says for each host name whose loopback it is: its own, or that of the service it shares."""
        self._networks = dict(networks)
        self._ports: dict[tuple[str, int], int] = {}

    def port(self, host: str, port: int) -> int:
        """The loopback port that stands for a port of a container."""
        address = (self._networks[host], port)
        if address not in self._ports:
            self._ports[address] = reserve_port()
        return self._ports[address]

    def put(self, host: str, port: int, here: int) -> None:
        """Lets a port that something listens on already stand for a port of a container."""
        self._ports[(self._networks[host], port)] = here

    def url(self, host: str, port: int) -> str:
        """The base URL of what a service serves on a port of its container."""
        return f"http://127.0.0.1:{self.port(host, port)}"

    def rewrite(self, text: str, host: str, paths: Mapping[str, Path]) -> str:
        """A text of the container `host`: its addresses, its `port: N` and the paths of `paths` as they are here."""

        def address(found: re.Match[str]) -> str:
            name, port = found["name"], int(found["port"])
            if name not in OWN and name not in self._networks:
                return found[0]
            return f"127.0.0.1:{self.port(host if name in OWN else name, port)}"

        def own_port(found: re.Match[str]) -> str:
            return f"{found[1]}{self.port(host, int(found[2]))}"

        text = re.sub(r"(?m)((?:^|[ _])port: )(\d+)$", own_port, text)
        text = re.sub(r"(?<![\w.-])(?P<name>[\w.-]+):(?P<port>\d{2,5})\b", address, text)
        text = text.replace("0.0.0.0", "127.0.0.1")
        if not paths:
            return text
        longest_first = "|".join(sorted(map(re.escape, paths), key=len, reverse=True))
        return re.sub(rf"(?<![\w/.-])({longest_first})(?![\w.-])", lambda found: str(paths[found[1]]), text)
