"""Load runs: what a tier does under a load that is the same for all, with times that wait for nobody.

plan      what a block is to do          order     which block comes when
arrivals  when requests are due          bodies    what is sent, always asking for a stream
driver    sends them, open loop, and notes when what came; `run_block` is the way in
timed     one request's times            figures   what a block showed, and whether it may be used
sweep     the next rate to try           closed    the next concurrency to try
"""
