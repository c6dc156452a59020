"""What people and the guard decided: a hash-chained log, and what is in force by it.

`decisions` appends (`whence`: from where), `chain` proves without SQL, `chain_watch` looks on a schedule,
`decision_search`, `decision_reading` and `decision_export` hand it out, `policy_changes` notes a policy that
is another. In force: `routes`, `approvals`, `holds`, `interventions`. A change and its row are one
transaction.
"""
