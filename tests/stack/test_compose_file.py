"""The compose file, its images and what it mounts keep to the rules of the project."""

from __future__ import annotations

import fnmatch
import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.real.parts import part
from tests.stack.compose import COMPOSE_FILE, PROJECT, Service, services
from tests.stack.dockerfile import instructions, read_image

pytestmark = pytest.mark.real("compose")

DOCKERFILES = sorted(
    path for folder in (".", "demo-agent", "collector-config") for path in (PROJECT / folder).glob("Dockerfile")
)
PROVISIONING = PROJECT / "deploy" / "grafana" / "provisioning"


def test_without_a_profile_there_is_what_ends_in_jaeger() -> None:
    """`docker compose up` starts the server, the agent, the bridge, the collector and Jaeger; the rest is asked for."""
    plain = {name for name, service in services().items() if not service.profiles}

    assert plain == {"server", "agent", "otel-bridge", "otel-collector", "jaeger"}
    assert {profile for service in services().values() for profile in service.profiles} == {"grafana"}


def test_nothing_is_to_be_edited_or_set() -> None:
    """The compose file has no variables."""
    assert "${" not in COMPOSE_FILE.read_text()


def test_every_service_is_confined() -> None:
    """No root, no capabilities, no new privileges, nothing writable but volumes, limits on memory and processes."""
    for name, service in services().items():
        user, _, _ = str(service.raw["user"]).partition(":")

        assert int(user) > 0, name
        assert service.raw["read_only"], name
        assert service.raw["cap_drop"] == ["ALL"], name
        assert "no-new-privileges:true" in service.raw["security_opt"], name
        assert service.raw["mem_limit"], name
        assert service.raw["pids_limit"] > 0, name


def test_only_loopback_is_published() -> None:
    """Every published port is on 127.0.0.1."""
    published = [port for service in services().values() for port in service.raw.get("ports", [])]

    assert published
    assert {port["host_ip"] for port in published} == {"127.0.0.1"}


def test_every_image_has_a_version() -> None:
    """Images from elsewhere are named with a version; the others are built here, from such images."""
    from_elsewhere = {service.image for service in services().values() if service.build is None}
    bases = {
        rest.partition(" ")[0]
        for path in DOCKERFILES
        for instruction, rest in instructions(path.read_text())
        if instruction == "FROM"
    }

    for image in from_elsewhere | bases:
        assert re.search(r":v?\d+[\d.]*(-\w+)?$", image), image


def test_state_and_logs_are_in_named_volumes() -> None:
    """What is written is a named volume on a folder; what is mounted from the project is read-only."""
    for service in services().values():
        for mount in service.mounts:
            if mount.source is not None:
                assert mount.read_only, mount
                assert mount.source.exists(), mount
            else:
                assert "." not in Path(mount.target).name, mount


def test_a_bridge_has_the_whole_log_folder_and_only_reads_it() -> None:
    """The server's log folder, where its specification has it, is the bridges' too, read-only."""
    every = services()
    (logs,) = every["server"].mounts
    for name in ("otel-bridge", "otel-bridge-grafana"):
        seen = next(mount for mount in every[name].mounts if mount.volume == logs.volume)

        assert (seen.target, seen.read_only) == ("/app/logs", True)
        assert logs.target in every[name].command


def built() -> Iterator[Service]:
    """The services whose images are built here and say what they run."""
    for service in services().values():
        if service.build is not None and read_image(service.build).entrypoint:
            yield service


def test_images_run_as_the_user_that_compose_names() -> None:
    """The user of each image that is built here is the one of its service, so that volumes belong to it."""
    assert {service.name for service in built()} == {"server", "agent", "otel-bridge", "otel-bridge-grafana"}
    for service in built():
        assert service.build is not None
        assert read_image(service.build).user == service.raw["user"]


@pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: path.parent.name)
def test_dockerfile_copies_what_is_there(path: Path) -> None:
    """What a Dockerfile copies is in the project, and in the part of it that .dockerignore lets through."""
    let_through = [line[1:] for line in (PROJECT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    for instruction, rest in instructions(path.read_text()):
        words = rest.split()
        if instruction != "COPY" or words[0].startswith("--from"):
            continue
        for source in words[:-1]:
            copied = [PROJECT / source] if (PROJECT / source).is_file() else list((PROJECT / source).rglob("*.*"))
            assert copied, source
            for file in copied:
                parts = file.relative_to(PROJECT).parts
                above = ["/".join(parts[:length]) for length in range(1, len(parts) + 1)]
                assert any(fnmatch.fnmatch(name, pattern) for name in above for pattern in let_through), file


def pins(path: Path) -> set[str]:
    """The requirements of a lock file, with their versions."""
    return set(re.findall(r"^[\w.-]+==[^ ;\\]+", path.read_text(), re.MULTILINE))


@pytest.mark.parametrize("name", ["runtime.txt", "build.txt", "compiled.txt", "demo.txt"])
def test_images_install_locked_versions(name: str) -> None:
    """What images install are the versions that the project is tested with."""
    folder = PROJECT / "requirements"

    assert pins(folder / name)
    assert pins(folder / name) <= pins(folder / "locked.txt")


def test_images_have_the_server_that_is_tested() -> None:
    """The tag of the server's image is the version of the package that its lock file names."""
    lock = json.loads((PROJECT / "tests" / "real" / "parts" / "server" / "package-lock.json").read_text())
    version = lock["packages"]["node_modules/@debugmcp/mcp-debugger"]["version"]

    assert services()["server"].image.endswith(f":{version}")


def test_data_sources_are_services_of_the_stack() -> None:
    """Grafana's data sources are at ports that services listen on, and exemplars lead to one of them."""
    sources = yaml.safe_load((PROVISIONING / "datasources" / "otel-bridge.yaml").read_text())["datasources"]
    uids = {source["uid"]: source for source in sources}
    tempo = yaml.safe_load((PROJECT / "deploy" / "tempo.yaml").read_text())

    assert uids["prometheus"]["url"] == "http://prometheus:9090"
    assert uids["tempo"]["url"] == f"http://tempo:{tempo['server']['http_listen_port']}"
    (destination,) = uids["prometheus"]["jsonData"]["exemplarTraceIdDestinations"]
    assert (destination["name"], destination["datasourceUid"]) == ("trace_id", "tempo")


def test_grafana_knows_how_often_prometheus_scrapes() -> None:
    """Grafana's interval is Prometheus' own, and half of the collector's: an exemplar lives for one flush."""
    scrapes = yaml.safe_load((PROJECT / "deploy" / "prometheus.yml").read_text())["global"]["scrape_interval"]
    collector = yaml.safe_load((PROJECT / "collector-config" / "grafana.yaml").read_text())
    flushes = collector["connectors"]["span_metrics"]["metrics_flush_interval"]
    (source,) = (
        source
        for source in yaml.safe_load((PROVISIONING / "datasources" / "otel-bridge.yaml").read_text())["datasources"]
        if source["type"] == "prometheus"
    )

    assert source["jsonData"]["timeInterval"] == scrapes
    assert int(flushes.removesuffix("s")) == 2 * int(scrapes.removesuffix("s"))


def test_dashboards_are_provisioned_from_where_they_are_mounted() -> None:
    """Grafana loads its dashboards, and its first page, from the folder that the compose file mounts."""
    grafana = services()["grafana"]
    provider = yaml.safe_load((PROVISIONING / "dashboards" / "otel-bridge.yaml").read_text())["providers"][0]
    mounts = {mount.target: mount.source for mount in grafana.mounts}

    assert mounts[provider["options"]["path"]] == PROJECT / "dashboards"
    home = Path(grafana.environment["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"])
    assert (PROJECT / "dashboards" / home.name).exists()
    assert str(home.parent) == provider["options"]["path"]


@pytest.mark.real("prometheus")
def test_promtool_accepts_the_prometheus_file() -> None:
    """Prometheus' own checker has nothing against its configuration, its lints included."""
    promtool = part("prometheus").with_name("promtool")
    done = subprocess.run(
        [promtool, "check", "config", "--lint-fatal", PROJECT / "deploy" / "prometheus.yml"],
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
