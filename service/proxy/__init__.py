"""The data plane: a reverse proxy that keeps both sides of every sampled exchange.

Enters: clients' bytes. Leaves: the same bytes to a backend, the backend's bytes to the client, and sealed
captures to the store. Nothing downstream of the client is awaited on the way. Imported by `service.cli`.

One request, in order: `downstream` (a client's connection) reads it with `requests` and `heads`; `door` finds
its model (`scan`), answers or refuses it (`errors`; by its model's limits, `guards`), or admits it and says
whether it is kept (`admission`); where something is limited, `crowd` says whether it waits in a `line`;
`relay` asks `routing` and `pool` for a tier and a backend, sends it over `upstream`, writes the answer
(`answers`) to the client and a bounded copy to `recorder`; what is left (`passage`) goes through `plane`,
which holds all that the connections of a process share, to `meters`, which `numbers` requests, and to
`shipper`. `holding` bounds what bodies take. `health` probes backends.
`entrance` lets clients in, by TLS if so configured.
`run` is the parent, `child` one of its processes; `listening`, `admin` and `exposition` are the parent's
sockets and pages. `steering` reads configuration and `certificates` again and says what can be had without a
restart (`reloading`); `control` brings it to the processes, where `adoption` puts it in force.

Modules that decide (`heads`, `answers`, `scan`, `admission`, `routing`, `passage`, `pool`,
`guards`, `prompts`, `line`, `shares`) take and return
values; connections and the relay perform.
"""
