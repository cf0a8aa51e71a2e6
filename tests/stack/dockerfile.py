"""What a container of a Dockerfile's stage is started with."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from tests.stack.compose import Build


@dataclass(slots=True)
class Image:
    """The entry point, default command, variables and user of an image; the base image's own are not known."""

    entrypoint: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    user: str = ""


def read_image(build: Build) -> Image:
    """Reads a stage of a Dockerfile, the last one if none is named. Understands the exec form alone."""
    image, wanted = Image(), False
    for instruction, rest in instructions(build.dockerfile.read_text()):
        if instruction == "FROM":
            stage = rest.partition(" AS ")[2]
            wanted = build.stage in (None, stage)
            image = Image() if wanted else image
        if not wanted:
            continue
        if instruction == "ENTRYPOINT":
            image.entrypoint = tuple(json.loads(rest))
        elif instruction == "CMD":
            image.command = tuple(json.loads(rest))
        elif instruction == "USER":
            image.user = rest
        elif instruction == "ENV":
            assigned = (word.partition("=") for word in shlex.split(rest))
            image.environment = {**image.environment, **{name: value for name, _, value in assigned}}
    return image


def instructions(text: str) -> Iterator[tuple[str, str]]:
    """The instructions of a Dockerfile in order: name in capitals, and the rest in one line."""
    without_comments = re.sub(r"(?m)^\s*#.*\n", "", text)
    for line in without_comments.replace("\\\n", " ").splitlines():
        if line.strip():
            instruction, _, rest = line.strip().partition(" ")
            yield instruction.upper(), rest.strip()
