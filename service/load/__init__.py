"""Load runs: what a tier does under a load that is the same for all, by times that wait for nobody.

Enters: a `BlockPlan`, where to send, and requests. Leaves: a `BlockFigures`, with why it must not be used if
it must not. `block.run_together` is the way in; everything about it that can be reckoned beforehand or
afterwards is pure. The room knows no store: who runs jobs asks it for blocks and keeps what they show.

plan, timed, figures   what a block is to do, one request's times, what a block showed
arrivals               when requests are due, from a seed or a recorded trace's times
bodies, output, events what is sent, and which events of the answer carry tokens
servers, connection, flight, driver, alarm   sending, open or closed loop, and noting when what came
engine_watch, clients  what engines tell meanwhile; whether clients still get what they are promised
reckoning, growth      from times to figures: goodput, limits, over-saturation
order, extent          which block comes when; how long windows must be for the power of the gate
cells, filler          a cell of a workload matrix as a block; prompts of a wanted length
sweep, crowd           the next rate, the next concurrency to try, from the blocks so far

What must not be loaded, since it serves, is told by `service.store.verdicts.serving`.
"""
