"""HTTP/1.1 as it is spoken here: clients' bytes to requests, backends' bytes to answers, and back. No I/O.

`requests` and `answers` drive llhttp and add what it leaves to us, by `heads` and `answer_heads`, which
also write a head for the other side; `known` spares both of them a head they have read before.
`administrative` says which paths never pass, `errors` how we refuse, `holding` how many bytes of bodies are
held.
"""
