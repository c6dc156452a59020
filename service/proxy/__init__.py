"""The data plane: a reverse proxy that keeps both sides of every sampled exchange.

Enters: clients' bytes. Leaves: the same bytes to a backend, the backend's bytes to the client, and sealed
captures to the store. Nothing downstream of the client is awaited on the way. Imported by `service.cli`.

From the top: `processes` start and steer `traffic`, whose requests are read by `http`, judged by `entry`, and
whose copies go to `captures`; all are counted by `gauges`. `config` is what the whole of it is told.

One request, in order: `traffic.downstream` reads it with `http.requests`; `entry.door` admits or answers it;
`traffic.relay` sends it to a backend and writes the answer, read with `http.answers`, to the client and a
bounded copy to `captures.recorder`; when it is over, `traffic.plane` hands it to `gauges.meters` and
`captures.shipper`.
"""
