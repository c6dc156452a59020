"""Perplexity as a pre-screen: how much a candidate is surprised by what its baseline answered.

`texts` what is asked, `forcing` the bodies that make an engine tell the log probability of given words and
what it answers (pure), `surprise` the figures with an interval (pure), `asking` puts it to backends.

It sees that a tier is broken before any traffic does, and nothing more: perplexity moves by a hundredth
while tool calls fall apart. Whatever it finds, it approves nothing, rejects nothing and is kept nowhere.
"""
