"""telha-queue beside the queues that a Python program would use instead: `python -m bench.peers`.

Reading order: protocol (what a peer is), adapters/ (one file each), measure (one cell of the table), rounds (all of
them, interleaved), smoke (does every adapter keep a queue's promises?), report (the page in docs/).
"""
