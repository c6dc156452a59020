"""The copies: a bounded `recorder` beside each stream, and the `shipper` that seals and sends what it kept.

Clients never wait for either.
"""
