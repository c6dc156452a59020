"""What people and a judge say of pairs, blind.

`adjudication` queues and hands out, `kept_text` seals what is judged, `labelling` writes labels down,
`judge_queue` is a language model's turn, `access_log` who saw which text.
"""
