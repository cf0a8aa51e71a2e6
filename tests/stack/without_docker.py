"""The compose file without Docker: each of its services as a process of this machine.

Reads docker-compose.yml, the Dockerfiles and the configurations that the containers mount, and starts the same programs
with the same arguments, variables and files; host names become loopback, named volumes folders. What differs:

- Grafana is left out, and Jaeger stands in for Tempo: neither can be had here. Jaeger is 1.76, the collector lacks
  what it does not need, Prometheus is Debian's.
- The server's program has its log folder in a container written into its code; here it runs from a copy that names
  another one. It listens on all interfaces, as it does in its container, and answers loopback names alone.

`python -m tests.stack.without_docker [--profile grafana]` runs it till Ctrl-C.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Self

from tests.real.parts import part
from tests.real.program import Program, end_marked, marked
from tests.stack.compose import PROJECT, Mount, Service, services
from tests.stack.dockerfile import read_image
from tests.stack.places import Places
from tests.waiting import wait_until

LEFT_OUT = ("grafana",)
SERVER_LOGS = "/app/logs"
DEADLINE_S = 90.0
BIN = Path(sys.executable).parent

_direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class Stack:
    """The services of the compose file as a context manager: inside the block all are healthy.

    `folder` gets their volumes, files and output. `more_arguments` are added to the command of a service.
    """

    def __init__(
        self,
        folder: Path,
        profiles: Collection[str] = (),
        more_arguments: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self.folder = folder
        self.services = {
            name: service
            for name, service in _with_stand_in(services()).items()
            if name not in LEFT_OUT and set(service.profiles) <= set(profiles)
        }
        self.places = Places({name: service.network for name, service in self.services.items()})
        self.programs: dict[str, Program] = {}
        self._more = more_arguments or {}
        self._open = ExitStack()

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        with ExitStack() as opening:
            # The server's adapters and programs are in process groups of their own.
            opening.callback(end_marked, self.folder)
            waiting = dict(self.services)
            while waiting:
                ready = [service for service in waiting.values() if not set(service.waits_for) & set(waiting)]
                assert ready, f"these wait for each other: {', '.join(waiting)}"
                for service in ready:
                    self.programs[service.name] = opening.enter_context(self._program(service))
                for service in ready:
                    self._wait_healthy(service)
                    del waiting[service.name]
            self._open = opening.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def url(self, service: str, port: int) -> str:
        """The base URL here of what a service serves on a port of its container."""
        return self.places.url(service, port)

    def volume(self, name: str) -> Path:
        """The folder that stands for a named volume."""
        folder = self.folder / "volumes" / name
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def environment(self, service: Service) -> dict[str, str]:
        """The variables of a service: its image's, then its own, as they are here."""
        image = read_image(service.build).environment if service.build else {}
        given = {name: self._rewrite(service, value) for name, value in {**image, **service.environment}.items()}
        scratch = self.folder / service.name / "tmp"
        scratch.mkdir(parents=True, exist_ok=True)
        # `init` in compose, a clean folder for what is temporary, and this environment's Python before the machine's.
        return {**given, **marked(self.folder), "TMPDIR": str(scratch), "PATH": f"{BIN}:{os.environ['PATH']}"}

    def command(self, service: Service) -> list[str]:
        """What is run for a service: its image's entry point, then its command."""
        image = read_image(service.build) if service.build else None
        entrypoint = list(image.entrypoint) if image and image.entrypoint else [self._released(service.image)]
        words = [*entrypoint, *(service.command or (image.command if image else ()))]
        here = [self._rewrite(service, word) for word in words]
        for place, word in enumerate(words[:-1]):
            if word == "--port":
                here[place + 1] = str(self.places.port(service.name, int(words[place + 1])))
        return [*here, *self._more.get(service.name, ())]

    def _released(self, image: str) -> str:
        programs = {
            "otel-bridge-collector": "collector",
            "jaegertracing/jaeger": "jaeger",
            "prom/prometheus": "prometheus",
        }
        return str(part(programs[image.partition(":")[0]]))

    def _program(self, service: Service) -> Program:
        folder = self.folder / service.name
        folder.mkdir(exist_ok=True)
        for mount in service.mounts:
            if mount.source is not None:
                self._copy(service, mount)
        return Program(self.command(service), folder / "output.log", self.environment(service))

    def _paths(self, service: Service) -> dict[str, Path]:
        """Paths in the container, and where they are here."""
        paths = {mount.target: self._place(service, mount) for mount in service.mounts}
        if service.build:
            paths |= {"/workspace": PROJECT / "demo-agent" / "programs", "/agent": PROJECT / "demo-agent"}
        if service.name == "server":
            paths["/app/node_modules"] = self._server()
        return paths

    def _place(self, service: Service, mount: Mount) -> Path:
        if mount.volume is not None:
            return self.volume(mount.volume)
        return self.folder / service.name / mount.target.lstrip("/")

    def _copy(self, service: Service, mount: Mount) -> None:
        assert mount.source is not None
        target = self._place(service, mount)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(self._rewrite(service, mount.source.read_text()))

    def _rewrite(self, service: Service, text: str) -> str:
        return self.places.rewrite(text, service.name, self._paths(service))

    def _server(self) -> Path:
        """`node_modules` with a copy of the server that logs into the volume; what it has of others' is linked."""
        modules = self.folder / "server" / "node_modules"
        if not modules.exists():
            real = part("server").parent
            copy = modules / "@debugmcp" / "mcp-debugger" / "dist"
            shutil.copytree(real, copy, ignore=shutil.ignore_patterns("vendor"))
            (copy / "vendor").symlink_to(real / "vendor")
            shutil.copy(real.parent / "package.json", copy.parent)
            logs = str(self.volume("server-logs"))
            for program in (copy / "cli.mjs", copy / "proxy" / "proxy-bundle.cjs"):
                code = program.read_text()
                assert SERVER_LOGS in code, f"{program.name} has its log folder elsewhere"
                program.write_text(code.replace(SERVER_LOGS, logs))
        return modules

    def _wait_healthy(self, service: Service) -> None:
        program = self.programs[service.name]

        def healthy_or_gone() -> bool:
            assert program.running or program.process is None or program.process.returncode == 0, (
                f"{service.name} ended instead of getting healthy:\n{program.output[-4000:]}"
            )
            return not program.running or self.healthy(service)

        wait_until(healthy_or_gone, f"{service.name} is healthy", DEADLINE_S)

    def healthy(self, service: Service) -> bool:
        """Runs a service's health check; one that asks a URL is asked from here, its program may not be there."""
        form, *words = (self._rewrite(service, word) for word in service.health)
        urls = [url for word in words for url in re.findall(r"http://[^\s'\"]+", word)]
        if urls:
            return _answers(urls[0])
        command = ["sh", "-c", *words] if form == "CMD-SHELL" else words
        env = os.environ | self.environment(service)
        done = subprocess.run(command, env=env, capture_output=True, check=False, timeout=60)
        return done.returncode == 0


def _answers(url: str) -> bool:
    try:
        with _direct.open(url, timeout=5) as reply:
            return bool(reply.status == 200)
    except OSError:
        return False


def _with_stand_in(all_services: Mapping[str, Service]) -> dict[str, Service]:
    """The services with Jaeger, as it is configured here, in Tempo's place; its page is at Jaeger's port."""
    jaeger, tempo = all_services["jaeger"], all_services["tempo"]
    traces = next(mount for mount in tempo.mounts if mount.volume)
    config = next(mount for mount in jaeger.mounts if mount.source)
    where = next(mount.target for mount in jaeger.mounts if mount.volume)
    stand_in = replace(
        jaeger,
        name=tempo.name,
        network=tempo.network,
        mounts=(config, replace(traces, target=where)),
        profiles=tempo.profiles,
        waits_for=tempo.waits_for,
    )
    return {**all_services, tempo.name: stand_in}


def main() -> int:
    """Runs the stack in a temporary folder till Ctrl-C or SIGTERM, and says where to look."""
    parser = argparse.ArgumentParser(description="Runs docker-compose.yml without Docker, till Ctrl-C.")
    parser.add_argument("--profile", action="append", default=[], help="as docker compose has it")
    profiles = parser.parse_args().profile
    with tempfile.TemporaryDirectory(prefix="otel-bridge-stack-") as folder, Stack(Path(folder), profiles) as stack:
        sys.stdout.write(f"Jaeger      {stack.url('jaeger', 16686)}\n")
        if "prometheus" in stack.services:
            sys.stdout.write(f"Prometheus  {stack.url('prometheus', 9090)}\n")
        sys.stdout.write(f"OTLP        {stack.url('otel-collector', 4318)}\nOutput      {folder}\n")
        sys.stdout.flush()
        signal.sigwait({signal.SIGINT, signal.SIGTERM})
    return 0


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    sys.exit(main())
