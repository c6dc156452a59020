"""The database: opening it, transactions, and every table.

`database` opens, checks and translates what goes wrong; `schema` has the tables that came first and the
version of all, `*_tables` the others, `data_version` tells whether anything was committed. Imports nothing of
the store; every room above reads and writes here.
"""
