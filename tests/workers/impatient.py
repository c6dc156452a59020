"""The app that workers run, but for its patience with the broker: a second, and not half a minute."""

from __future__ import annotations

from workers.app import app

app.conf.broker_transport_options = {**app.conf.broker_transport_options, "socket_timeout": 1}
