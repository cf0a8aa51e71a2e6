"""The examples of `deploy/` pass the checkers of what they are for."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import kubernetes_validate  # type: ignore[import-untyped]
import pytest
import yaml

from tests.real.parts import part
from tests.stack.compose import PROJECT, Build
from tests.stack.dockerfile import read_image

UNIT = PROJECT / "deploy" / "systemd" / "otel-bridge.service"
SIDECAR = PROJECT / "deploy" / "kubernetes" / "sidecar.yaml"
KUBERNETES = "1.35"


@pytest.fixture
def unit_of_this_machine(tmp_path: Path) -> Path:
    """The unit with the path of a program that is there: systemd looks for it."""
    unit = tmp_path / UNIT.name
    unit.write_text(re.sub(r"(?m)^ExecStart=\S+", f"ExecStart={sys.executable}", UNIT.read_text()))
    return unit


def analyze(*arguments: str | Path) -> str:
    """Runs systemd's own checker; AssertionError shows what it has to say if it fails."""
    done = subprocess.run([part("systemd-analyze"), *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.real("systemd-analyze")
def test_systemd_has_nothing_against_the_unit(unit_of_this_machine: Path) -> None:
    """`systemd-analyze verify` accepts the unit without a word."""
    assert analyze("verify", "--man=no", unit_of_this_machine) == ""


@pytest.mark.real("systemd-analyze")
def test_unit_is_hardened(unit_of_this_machine: Path) -> None:
    """By systemd's own measure of 0 (best) to 10 the unit exposes less than 2."""
    analyze("security", "--offline=true", "--threshold=20", unit_of_this_machine)


def test_unit_keeps_its_state_where_it_may_write() -> None:
    """The one folder that the unit may write is the one that it keeps its state in, private."""
    unit = UNIT.read_text()

    assert "StateDirectory=otel-bridge\n" in unit
    assert "Environment=OTEL_BRIDGE_STATE_DIR=/var/lib/otel-bridge\n" in unit
    assert "StateDirectoryMode=0700\n" in unit


def objects() -> list[dict[str, Any]]:
    """The objects of the Kubernetes example."""
    return list(yaml.safe_load_all(SIDECAR.read_text()))


def test_kubernetes_accepts_the_sidecar() -> None:
    """Each object of the example fits the schema of its kind, and has no field that its kind does not know."""
    assert [made["kind"] for made in objects()] == ["PersistentVolumeClaim", "Deployment"]
    for made in objects():
        kubernetes_validate.validate(made, KUBERNETES, strict=True)


def test_sidecar_reads_what_the_server_writes() -> None:
    """The bridge has the server's log folder, read-only, as its argument, and its state outside of the pod."""
    pod = objects()[1]["spec"]["template"]["spec"]
    (bridge,), (server,) = pod["initContainers"], pod["containers"]
    seen = {mount["name"]: mount for mount in bridge["volumeMounts"]}
    written = {mount["name"]: mount for mount in server["volumeMounts"]}
    volumes = {volume["name"]: volume for volume in pod["volumes"]}

    assert seen["logs"] == written["logs"] | {"readOnly": True}
    assert bridge["args"] == ["tail", written["logs"]["mountPath"]]
    assert "persistentVolumeClaim" in volumes["state"]
    assert bridge["restartPolicy"] == "Always"
    image = read_image(Build(PROJECT / "Dockerfile", None))
    assert image.environment["OTEL_BRIDGE_STATE_DIR"] == seen["state"]["mountPath"]


def test_sidecar_is_confined() -> None:
    """No container runs as root, can gain privileges, or can write outside of its volumes."""
    pod = objects()[1]["spec"]["template"]["spec"]

    assert pod["securityContext"]["runAsNonRoot"]
    for container in pod["initContainers"] + pod["containers"]:
        context = container["securityContext"]
        assert not context["allowPrivilegeEscalation"]
        assert context["readOnlyRootFilesystem"]
        assert context["capabilities"] == {"drop": ["ALL"]}
        assert container["resources"]["limits"]["memory"]
