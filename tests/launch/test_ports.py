from __future__ import annotations

import socket

import pytest

from service.launch import PortUnusable, free_port
from service.launch.ports import check_free, free_ports, outgoing_from
from service.settings.units import Listen


def check(host: str, port: int) -> None:
    check_free(Listen(host=host, port=port), "proxy.listen", "TIERGATE_PROXY_LISTEN")


def test_several_free_ports_are_different() -> None:
    assert len(set(free_ports(50))) == 50


def test_a_free_port_is_none_that_an_outgoing_connection_may_be_given() -> None:
    if outgoing_from() < 11_000:
        assert free_port() > 0, "there is no room below"
    else:
        assert all(port < outgoing_from() for port in free_ports(50))


def test_a_free_port_can_be_bound() -> None:
    check("127.0.0.1", free_port())


@pytest.mark.parametrize("shared", [False, True])
def test_a_port_in_use_says_who_can_tell_and_what_to_set_even_where_it_could_be_shared(shared: bool) -> None:
    with socket.socket() as server:
        if shared:
            server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        server.bind(("127.0.0.1", 0))
        server.listen()
        port = server.getsockname()[1]
        with pytest.raises(PortUnusable) as caught:
            check("127.0.0.1", port)
    text = str(caught.value)
    assert f"proxy.listen: 127.0.0.1:{port} is already in use" in text
    assert f"sport = :{port}" in text
    assert "TIERGATE_PROXY_LISTEN" in text


def test_a_port_whose_connections_are_still_closing_is_free() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)):
            accepted, _ = server.accept()
            accepted.close()  # closed first: it is this side that waits
    check("127.0.0.1", port)


@pytest.mark.parametrize(
    ("host", "message"), [("203.0.113.7", "cannot be bound"), ("no-such-host.invalid", "host")]
)
def test_an_address_of_another_machine_is_refused(host: str, message: str) -> None:
    with pytest.raises(PortUnusable, match=message):
        check(host, 8080)
