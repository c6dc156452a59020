"""The data plane: a reverse proxy that keeps both sides of every sampled exchange.

Enters: clients' bytes. Leaves: the same bytes to a backend, the backend's bytes to the client, and sealed
captures to the store. Nothing downstream of the client is awaited on the way. Imported by `service.cli`.
"""
