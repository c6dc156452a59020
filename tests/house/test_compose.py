"""`compose.yaml` against the Compose specification's own schema: no container engine runs in tests."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from service.cli.api import DRAIN_SECONDS
from service.launch.everything import API_STOP_SECONDS, WORKER_STOP_SECONDS
from service.settings import load, units

ROOT = Path(__file__).parents[2]
COMPOSE = yaml.safe_load((ROOT / "compose.yaml").read_text())


def test_it_satisfies_the_compose_specification() -> None:
    checked = subprocess.run(
        [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", "compose.yaml"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout


def test_every_part_of_production_is_there() -> None:
    assert set(COMPOSE["services"]) == {
        *("proxy", "api", "worker", "guard", "load", "beat"),
        *("redis", "postgres"),
    }


@pytest.mark.parametrize("name", COMPOSE["services"])
def test_every_service_has_a_health_check(name: str) -> None:
    assert COMPOSE["services"][name]["healthcheck"]["test"]


@pytest.mark.parametrize("name", COMPOSE["services"])
def test_no_secret_stands_in_the_environment(name: str) -> None:
    for variable, setting in COMPOSE["services"][name].get("environment", {}).items():
        if any(word in variable for word in ("PASSWORD", "KEY", "URL", "TOKEN")):
            assert variable.endswith("_FILE"), variable
            assert str(setting).startswith("/run/secrets/"), variable


def test_every_secret_comes_from_a_file_and_is_used() -> None:
    secrets = COMPOSE["secrets"]
    assert all(set(secret) == {"file"} for secret in secrets.values())
    used = {name for service in COMPOSE["services"].values() for name in service.get("secrets", [])}
    assert used == set(secrets)


def test_every_named_volume_is_declared() -> None:
    named = {
        volume.split(":")[0]
        for service in COMPOSE["services"].values()
        for volume in service.get("volumes", [])
        if not volume.startswith((".", "/"))
    }
    assert named == set(COMPOSE["volumes"])


def test_the_proxy_waits_for_nothing() -> None:
    """It fails static: clients must be served while the database and Redis are still starting."""
    assert COMPOSE["services"]["proxy"]["depends_on"] == {}


def test_nobody_is_killed_who_is_still_finishing() -> None:
    """Compose kills after ten seconds where nothing is said, which a worker needs for its answers alone."""
    graces = {
        name: units.seconds(service.get("stop_grace_period", "10s"))
        for name, service in COMPOSE["services"].items()
    }
    assert API_STOP_SECONDS > DRAIN_SECONDS
    assert graces["api"] >= API_STOP_SECONDS
    assert min(graces["worker"], graces["guard"], graces["load"]) >= WORKER_STOP_SECONDS
    # its answers, its captures, its ledger and its logs (docs/operations.md)
    assert graces["proxy"] >= units.seconds("30s") + 15


@pytest.mark.parametrize("name", ["proxy", "api", "beat"])
def test_no_part_is_started_again_for_what_another_lacks(name: str) -> None:
    """`/readyz` is for load balancers: backends or stores that are down make no part unhealthy."""
    assert "/healthz" in str(COMPOSE["services"][name]["healthcheck"]["test"])


def test_no_server_of_ours_keeps_root() -> None:
    """The image's entrypoint gives it up for the server's own user, where it is asked to start the server."""
    assert " docker-entrypoint.sh valkey-server " in COMPOSE["services"]["redis"]["command"][-1]
    dockerfile = (ROOT / "deploy/Dockerfile").read_text()
    assert re.search(r"^USER tiergate$", dockerfile, re.MULTILINE)


def test_images_have_versions_and_ours_is_this_one() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    images = {service["image"] for service in COMPOSE["services"].values()}
    assert f"tiergate:{version}" in images
    assert all(re.search(r":\d", image) for image in images)


def test_the_image_is_built_of_what_it_copies_and_secrets_stay_out_of_git_and_image() -> None:
    dockerfile = (ROOT / "deploy/Dockerfile").read_text()
    copied = {
        source
        for line in re.findall(r"^COPY (?!--from)(.+)$", dockerfile, re.MULTILINE)
        for source in line.split()[:-1]
    }
    let_in = {line[1:] for line in (ROOT / ".dockerignore").read_text().split() if line.startswith("!")}
    assert let_in == copied
    assert "/secrets/" in (ROOT / ".gitignore").read_text().split()


def test_the_configuration_it_starts_from_is_valid_and_fits_its_services(tmp_path: Path) -> None:
    key = tmp_path / "capture.key"
    key.write_text("00" * 32)
    environ = {
        "TIERGATE_REDIS_URL": "redis://redis:6379/0",
        "TIERGATE_DATABASE_URL": "postgresql+psycopg://tiergate@postgres/tiergate",
        "TIERGATE_CAPTURE_KEY_FILE": str(key),
        "TIERGATE_STATE_DIR": str(tmp_path),
    }
    settings = load(ROOT / "deploy/compose/tiergate.yaml", environ)
    assert settings.proxy.listen_host == settings.api.host == "0.0.0.0"
    # the load worker is in a container of its own, where nothing of 127.0.0.1 is the proxy's
    proxy = settings.proxy
    assert settings.shadow_job.watch == (f"http://proxy:{proxy.admin_port}",)
    assert proxy.admin_host == "0.0.0.0"
    assert "proxy" in proxy.admin_hosts
    published = [port.split(":")[-1] for port in COMPOSE["services"]["proxy"]["ports"]]
    assert published == [str(proxy.listen_port)], "the admin address asks for no credentials"
