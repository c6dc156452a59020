"""A decision as a signed statement that anybody can check offline, with our code or without it.

envelope   DSSE: bytes and their type under an Ed25519 signature
keys       the two files of a key pair
statement  in-toto Statement v1 of one row of the decision log, with the head of the log inside

Enters: a row and the head. Leaves: an envelope; of one that is checked, what it says.
"""
