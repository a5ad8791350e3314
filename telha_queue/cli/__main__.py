"""`python -m telha_queue.cli` is `telha`."""

from telha_queue.cli import main

main()
