"""Shadow jobs and what load showed.

`jobs`, their `turns` and `load_blocks`, what is needed to repeat one (`manifest`), what one is held to
(`job_terms`) and `reports`. Of one tier for advice: `tier_load`, `tier_traffic`, `engine_readings`,
`tier_capacity`.
"""
