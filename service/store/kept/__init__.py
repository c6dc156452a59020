"""What is kept of traffic, sealed and for a time: requests for shadow jobs, answers, beginnings of prompts.

`corpus_plan`, `corpus` (what is drawn) and `corpus_members` (what is there), `kept_answers` (to be judged
again), `prompt_prefixes`; `forgetting` takes all of it away, in time or when asked.
"""
