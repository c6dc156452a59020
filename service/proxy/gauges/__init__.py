"""What a process counts and tells: `meters` (and the ledger, whose `numbers` bound what a kill can take),
`vitals` and `lag` of the process itself, their `exposition` for Prometheus, and the `access_log`.
"""
