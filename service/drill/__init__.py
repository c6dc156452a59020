"""`tiergate drill`: a fire drill of the whole instrument, on a user's backends and policy.

What is damaged here is known, so what the instrument must say is known as well: a relay between the tiers
and the baseline's own backends damages a share of the answers; proxy, worker, evaluators, store and decision
are the real ones, in processes and stores of the drill's own (ADR 20).

`defects` what is done to answers and which criterion must notice · `damage` doing it · `questions`,
`prompts` what is asked · `arms` who answers damaged and who does not · `relay` the arms as servers ·
`configuration` the drill's `tiergate.yaml` · `chain` its processes · `acts` what must be seen, and whether it
was · `run` one drill · `report` what a person reads.
"""
