"""The proxy as processes: a parent that touches no traffic, and children that carry it.

`run` is the parent, `child` one that serves. `listening` opens their sockets, `entrance` lets clients in,
by TLS if so configured (`certificates`). `admin` serves the parent's pages. `steering` reads the
configuration again and says what can be had without a restart (`reloading`) and which new backends do not
answer (`first_look`); `control` brings it to the children, where `adoption` puts it in force. `terminal` is
for who runs it in one.
"""
