"""The page of one tier: what was decided, on which evidence, and what is still missing.

`page` the route · `reading` all that it shows, read from the stores once · `progress` pairs so far, still
needed, and by when · `narrowing` limits over time, with looks and decisions · `strata` the worst kinds of
requests, beside what the baseline shows against itself · `money` what adds up to the net benefit · `load` the
last load run that counts.
"""
