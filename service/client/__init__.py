"""The approval API from the other side, for people and programs that ask it.

Enters: a base URL, a token, a question. Leaves: a frozen reading of the answer (`readings`), or the reason
why there is none (`errors`). `connection.TiergateClient` asks, `tables` prints a verdict for a terminal.
Imported by `service.cli` and `service.demo`; knows `service.decision`'s nouns and nothing of the server.
"""
