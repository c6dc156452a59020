"""What a verdict is read from, and what the guard goes by.

`standing` is a ladder with its verdicts, a `rung` each, from `ladder_facts` and `ladder_counts` in few
questions, `coverage` of the traffic (`traffic_since` an epoch began), `epochs` and `current_epochs` of what
engines tell (`observations`), and `measurements` of gates. `detectors`: harm while it serves; `looks` are
kept for people; `serving`: who serves clients now.
"""
