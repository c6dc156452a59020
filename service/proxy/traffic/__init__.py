"""Connections and what goes over them.

`downstream` is a client's connection; each of its admitted requests becomes a `relay`, an `errand` to a
backend and the way back. `routing` says which tier, `servers` which backend of the `pool`, `crowd` whether it
waits in a `line` (each process has its `shares` of a limit); `upstream` is a backend's connection, `passage`
how far a request may come in which time. Beside traffic, by `asking`: `health` asks backends how they are,
`kv_guard` how full their caches are, and `notices` tells the log.
`plane` holds what the connections of a process share, and passes on what is over; `access_lines` is what the
access log says of it, `telling` what the parent hears of the process.
"""
