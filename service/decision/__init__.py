"""What the evidence amounts to. PURE.

Enters: a `Policy` (what a person asks for) and `Evidence` (tallies and measurements of one tier). Leaves: a
`Verdict` whose findings print every number they rest on. Implements `docs/statistics.md`; imported by the
edges and the roots, imports none of them.
"""
