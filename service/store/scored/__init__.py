"""Pairs that were scored: recorded once, counted in the same transaction, read as evidence.

A worker holds a capture (`leases`), records its `units` (`pairs`, `conversations`, `details`), and `counting`
with `own_strata` says what they add. Read: `evidence`, `breakdown` (strata, tenants), `worst`, `failures`,
`repeats`, `latest`, `adjudicated` (with people's labels), `pair_listing` and `pair_texts` (for people).
Proof: `recount`, `upgrade`.
"""
