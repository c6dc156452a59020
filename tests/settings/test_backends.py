"""Keys, headers, certificates and addresses of backends: read where the file says, refused with the place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from service.fleet import Backend
from tests.authority import Authority
from tests.settings.test_load import Loaded, Problems


def only(minimal: dict[str, Any], backend: object) -> dict[str, Any]:
    minimal["models"]["qwen"]["ladder"] = [{"tier": "bf16", "backends": [backend]}]
    return minimal


def first(loaded: Loaded, minimal: dict[str, Any], backend: object, environ: object = None) -> Backend:
    return loaded(only(minimal, backend), environ).ladders["qwen"].baseline.backends[0]


@pytest.mark.parametrize(
    ("written", "url", "socket"),
    [
        ("unix:/run/vllm.sock", "unix:/run/vllm.sock", "/run/vllm.sock"),
        ("http://[::1]:8000", "http://[::1]:8000", None),
        ("https://gpu-a/", "https://gpu-a", None),
    ],
)
def test_a_backend_is_reached_by_name_address_or_socket(
    written: str, url: str, socket: str | None, loaded: Loaded, minimal: dict[str, Any]
) -> None:
    backend = first(loaded, minimal, written)
    assert (backend.url, backend.socket) == (url, socket)


@pytest.mark.parametrize("written", ["unix:vllm.sock", "unix://run/", "unix:", "unix:/" + "x" * 120])
def test_a_socket_has_an_absolute_path_that_the_kernel_takes(
    written: str, problems: Problems, minimal: dict[str, Any]
) -> None:
    (problem,) = problems(only(minimal, written))
    assert "socket" in problem


def test_headers_come_from_the_file_from_files_and_from_the_environment(
    loaded: Loaded, minimal: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "gateway").write_text("s3cret\n")
    headers = {"X-Tenant": "gold", "x-gateway": {"file": "gateway"}, "x-other": {"env": "OTHER"}}
    backend = first(loaded, minimal, {"url": "http://a", "headers": headers}, {"OTHER": "from afar"})
    assert backend.headers == (("X-Tenant", "gold"), ("x-gateway", "s3cret"), ("x-other", "from afar"))
    assert "s3cret" not in repr(backend)


@pytest.mark.parametrize(
    ("headers", "place", "why"),
    [
        ({"Host": "a"}, "headers.Host", "written by the proxy itself"),
        ({"Content-Length": "1"}, "headers.Content-Length", "written by the proxy itself"),
        ({"connection": "close"}, "headers.connection", "written by the proxy itself"),
        ({"Transfer-Encoding": "x"}, "headers.Transfer-Encoding", "written by the proxy itself"),
        ({"X-Tiergate-Replay": "1"}, "headers.X-Tiergate-Replay", "written by the proxy itself"),
        ({"a b": "x"}, 'headers."a b"', "no spaces"),
        ({"a:": "x"}, "headers.a:", "no colon"),
        ({"a": "x\r\nb: y"}, "headers.a", "one line"),
        ({"a": " x"}, "headers.a", "without spaces around"),
        ({"a": "ü"}, "headers.a", "printable ASCII"),
        ({"a": ""}, "headers.a", "printable ASCII"),
        ({"a": {}}, "headers.a", "exactly one of value, file and env"),
        ({"a": {"value": "x", "env": "Y"}}, "headers.a", "exactly one of value, file and env"),
        ({"a": {"env": "NOT_THERE"}}, "headers.a.env", "the environment has no NOT_THERE"),
        ({"a": {"file": "gone"}}, "headers.a.file", "there is no file"),
        ({"a": {"env": "TWO_LINES"}}, "headers.a", "one line"),
        ({"a": "x", "A": "y"}, "headers.A", "twice"),
    ],
)
def test_a_header_that_cannot_be_sent_is_named(
    headers: dict[str, Any], place: str, why: str, problems: Problems, minimal: dict[str, Any]
) -> None:
    (problem,) = problems(only(minimal, {"url": "http://a", "headers": headers}), {"TWO_LINES": "a\nX: b"})
    assert f"models.qwen.ladder[0].backends[0].{place}" in problem
    assert why in problem


def test_a_key_and_an_authorization_header_contradict_each_other(
    problems: Problems, minimal: dict[str, Any]
) -> None:
    backend = {"url": "http://a", "api_key_env": "KEY", "headers": {"Authorization": "Basic eA=="}}
    (problem,) = problems(only(minimal, backend), {"KEY": "k"})
    assert "give one of the two" in problem


def test_a_key_that_would_break_out_of_its_header_is_refused(
    problems: Problems, minimal: dict[str, Any]
) -> None:
    (problem,) = problems(only(minimal, {"url": "http://a", "api_key_env": "KEY"}), {"KEY": "k\r\nX: y"})
    assert "api_key_env" in problem
    assert "one line" in problem


def test_certificates_are_read_and_tried_out(loaded: Loaded, minimal: dict[str, Any], tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    pair = authority.issue("proxy")
    backend = first(
        loaded,
        minimal,
        {"url": "https://a", "ca_file": "ca.pem", "certificate_file": "proxy.pem", "key_file": "proxy.key"},
    )
    assert (backend.tls.ca, backend.tls.certificate, backend.tls.key) == (
        authority.text,
        pair.text,
        pair.key_text,
    )
    assert not backend.tls.insecure_skip_verify
    assert "PRIVATE" not in repr(backend)
    assert first(loaded, minimal, {"url": "https://a", "insecure_skip_verify": True}).tls.insecure_skip_verify


@pytest.mark.parametrize(
    ("settings", "place", "why"),
    [
        ({"ca_file": "gone.pem"}, ".ca_file", "there is no file"),
        ({"ca_file": "proxy.key"}, ".ca_file", "no certificate in PEM form"),
        ({"certificate_file": "proxy.pem"}, "", "given together"),
        ({"certificate_file": "proxy.pem", "key_file": "other.key"}, ".key_file", "does not belong"),
        ({"ca_file": "ca.pem", "insecure_skip_verify": True}, ".ca_file", "nothing is verified"),
        ({"url": "http://a", "ca_file": "ca.pem"}, ".ca_file", "begin its URL with https://"),
        ({"url": "unix:/run/a", "insecure_skip_verify": True}, ".insecure_skip_verify", "not reached by TLS"),
        ({"insecure_skip_verify": "yes"}, ".insecure_skip_verify", "bool"),
    ],
)
def test_what_cannot_be_trusted_or_shown_is_named(
    settings: dict[str, Any],
    place: str,
    why: str,
    problems: Problems,
    minimal: dict[str, Any],
    tmp_path: Path,
) -> None:
    authority = Authority(tmp_path)
    authority.issue("proxy")
    authority.issue("other")
    (problem,) = problems(only(minimal, {"url": "https://a", **settings}))
    assert f"backends[0]{place} (line" in problem
    assert why in problem


def test_the_proxys_own_certificate_is_read_and_tried_out(
    loaded: Loaded, problems: Problems, minimal: dict[str, Any], tmp_path: Path
) -> None:
    authority = Authority(tmp_path)
    pair = authority.issue("proxy")
    tls = {"certificate_file": "proxy.pem", "key_file": "proxy.key", "client_ca_file": "ca.pem"}
    found = loaded(minimal | {"proxy": {"tls": tls}}).proxy.tls
    assert found is not None
    assert (found.certificate, found.key, found.client_ca) == (pair.text, pair.key_text, authority.text)
    assert found.certificate_file == pair.certificate
    for key, file in (("certificate_file", "proxy.key"), ("key_file", "ca.pem"), ("client_ca_file", "gone")):
        (problem,) = problems(minimal | {"proxy": {"tls": tls | {key: file}}})
        assert f"proxy.tls.{key} (line" in problem
    (problem,) = problems(minimal | {"proxy": {"tls": {"certificate_file": "proxy.pem"}}})
    assert "the key `key_file` is missing" in problem


@pytest.mark.parametrize(("mode", "means"), [("0660", 0o660), (600, 0o600), ("777", 0o777)])
def test_the_proxy_may_listen_on_a_socket_with_permissions(
    mode: object, means: int, loaded: Loaded, minimal: dict[str, Any]
) -> None:
    found = loaded(minimal | {"proxy": {"listen": "unix:/run/tiergate.sock", "socket_mode": mode}}).proxy
    assert (found.listen_path, found.listen_mode) == ("/run/tiergate.sock", means)
    elsewhere = {"TIERGATE_PROXY_LISTEN": "unix:/tmp/other.sock"}
    assert loaded(minimal, elsewhere).proxy.listen_path == "/tmp/other.sock"


def test_permissions_are_octal_and_only_clients_may_come_by_socket(
    problems: Problems, minimal: dict[str, Any]
) -> None:
    (problem,) = problems(minimal | {"proxy": {"socket_mode": "rw"}})
    assert "octal, such as 0660" in problem
    (problem,) = problems(minimal | {"proxy": {"admin": "unix:/run/admin.sock"}})
    assert "HOST:PORT" in problem


def test_a_proxy_is_not_its_own_backend_by_socket_either(problems: Problems, minimal: dict[str, Any]) -> None:
    content = only(minimal, "unix:/run/tiergate.sock") | {"proxy": {"listen": "unix:/run/tiergate.sock"}}
    (problem,) = problems(content)
    assert "is the proxy itself" in problem
