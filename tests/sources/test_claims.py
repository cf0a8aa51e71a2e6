"""Claims of logs that a wrapper follows."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from otel_bridge.sources.claims import claim, claimed_paths

_CLAIM = """
import sys
from pathlib import Path
from otel_bridge.sources.claims import claim
held = claim(Path(sys.argv[1]), sys.argv[2:])
print(flush=True)
sys.stdin.read()
"""


def test_a_claim_holds_until_it_is_released(tmp_path: Path) -> None:
    """Claimed paths are absolute, of all claims together, and free again when released."""
    folder = tmp_path / "claims"
    one = claim(folder, ["/logs/a.log", "relative.log"])
    two = claim(folder, ["/logs/b.log"])
    both = claimed_paths(folder)
    one.release()
    one.release()

    assert both == {"/logs/a.log", str(Path("relative.log").absolute()), "/logs/b.log"}
    assert claimed_paths(folder) == {"/logs/b.log"}
    two.release()
    assert list(folder.iterdir()) == []


def test_a_dead_process_claims_nothing(tmp_path: Path) -> None:
    """However a process ends, its claim ends with it, and its file is cleared away."""
    folder = tmp_path / "claims"
    command = [sys.executable, "-c", _CLAIM, str(folder), "/logs/a.log"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        alive = claimed_paths(folder)
        process.send_signal(signal.SIGKILL)
        process.wait()

    assert alive == {"/logs/a.log"}
    assert claimed_paths(folder) == frozenset()
    assert list(folder.iterdir()) == []


def test_claims_are_private(tmp_path: Path) -> None:
    """The folder is for this user alone, and so are the claims."""
    folder = tmp_path / "state" / "claims"
    held = claim(folder, ["/logs/a.log"])
    (file,) = folder.iterdir()

    assert (folder.stat().st_mode & 0o777, file.stat().st_mode & 0o777) == (0o700, 0o600)
    held.release()


def test_what_is_no_claim_is_passed_over(tmp_path: Path) -> None:
    """A missing folder, foreign files, links and broken claims claim nothing and break nothing."""
    folder = tmp_path / "claims"
    assert claimed_paths(folder) == frozenset()
    held = claim(folder, ["/logs/a.log"])
    (folder / "x.txt").write_text("x")
    (folder / "link.claim").symlink_to("/etc/passwd")
    os.mkfifo(folder / "fifo.claim")

    assert claimed_paths(folder) == {"/logs/a.log"}
    held.release()
