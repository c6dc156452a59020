"""`python -m service.cli`: the same as `tiergate`, for children of a supervisor that may not trust PATH."""

from service.cli import main

main()
