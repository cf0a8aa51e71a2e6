"""What the bridge's own processes do without: `requests` works as well, and a program's own is left alone."""

from __future__ import annotations

import subprocess
import sys

import pytest

ANSWER = """
import requests
answer = requests.Response()
answer._content = "für".encode()
print(requests.compat.chardet is None, answer.apparent_encoding, answer.text)
"""


def run(program: str) -> str:
    """What a program prints, every warning of which is an error."""
    words = [sys.executable, "-X", "utf8", "-W", "error", "-c", program]
    return subprocess.run(words, capture_output=True, text=True, encoding="utf-8", check=True).stdout


def test_requests_does_without_guessing_encodings() -> None:
    """It takes UTF-8, and says nothing of what is not there."""
    leave_out = (
        "from otel_bridge.cli.imports import leave_out_character_detection as leave_out\nleave_out()\nleave_out()"
    )

    assert run(leave_out + ANSWER) == "True utf-8 für\n"


@pytest.mark.parametrize("ours", ["otel_bridge", "otel_bridge.export.http_transport", "otel_bridge.cli.main"])
def test_a_program_that_imports_us_has_all_of_its_requests(ours: str) -> None:
    """Only a process that is ours alone leaves anything out."""
    assert run(f"import {ours}" + ANSWER).startswith("False ")
