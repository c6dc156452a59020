"""From what a job left in the stores to a report's document.

`loads` latencies and SLO from blocks of the SLO part · `curves` sweep, concurrency, what engines told ·
`pricing` costs from the job's findings · `judged` the verdict as it stands · `kept` the assembling, and where
reports are kept once a job is over. Figures of blocks come as JSON: load runs are a room of their own.
"""
