"""`compose.yaml` against the Compose specification's own schema: no container engine runs in tests."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from service.settings import load

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
