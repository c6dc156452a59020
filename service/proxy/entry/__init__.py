"""What becomes of a request, decided from its bytes and the configuration alone. No I/O.

`door` finds its model (`surface` at a glance, `scan` where a glance does not do), refuses it by its model's
limits (`guards`, which estimate `prompts`), answers it from the configuration, or admits it and says
whether its exchange is kept (`admission`). `packing` is for bodies that come compressed.
"""
