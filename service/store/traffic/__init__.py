"""The account of every request: `ledger` copies and reads it, `account` says what adds up.

`closing` counts conversations that are over, `resends` sees who asked again, `retention` lets go of the old.
"""
