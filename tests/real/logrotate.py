"""The real logrotate."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.real.parts import part


def copytruncate(log: Path, folder: Path) -> None:
    """Rotates `log` at once: its content is copied to `<log>.1`, and the file itself is cut to nothing."""
    config = folder / "logrotate.conf"
    config.write_text(f"{log} {{\n  copytruncate\n  rotate 3\n  nocompress\n  missingok\n}}\n")
    config.chmod(0o600)
    subprocess.run(
        [part("logrotate"), "--force", "--state", folder / "logrotate.state", config], check=True, capture_output=True
    )
