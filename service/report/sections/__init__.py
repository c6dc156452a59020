"""The parts of a report's page, one module each, in the order of `page`; left out where it has nothing.

`glance` the tiers at a glance, and what to do · `changed` since the run before · `quality` differences and
margins · `latency` under equal load · `rates` goodput and concurrency · `costs` money · `engines` what they
told · `account` the mirror ledger · `provenance` definitions and manifest.
"""
