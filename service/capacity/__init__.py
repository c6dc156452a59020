"""What an engine's memory holds, and what its caches save. PURE: numbers in, numbers and reasons out.

`precision` bytes of a cached number · `shape` layers of a model, and what each keeps of a token ·
`hugging_face` a shape from a config.json · `memory` blocks, sequences and the budget ·
`prefix_gate` is a prefix cache worth it · `prefix_replay` what one of any size would have reused ·
`prefix_window` the last day of its counters · `prefix_shared` what prompts begin with in common ·
`initial` a first configuration · `admission` what a proxy should let in · `batch` how many at once, and
what that costs · `symptoms` which stage hurts, `diagnosis_rules` why it may, `diagnosis` why it does ·
`patterns` what costs more when switched on ·
`bits` of declared words · `experiment` two runs that differ in one variable · `matrix` prompts of some
lengths by how many at once, and where a row turns; `matrix_file` the same on disk.
"""
