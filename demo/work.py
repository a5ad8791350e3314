"""The work itself: a handler for each kind of job, and the results they keep.

A job may run more than once: its worker can be lost after the work is done and before that is recorded. So a handler
does everything in a way that a second run repeats without harm: results are stored under the document's path, and
the follow-up job has an idempotency key.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from hashlib import blake2b
from math import hypot
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

from documents import read_pieces

from telha_queue import JobRecord, Queue

CHUNK_WORDS = 200
TOP_WORDS = 250
DIMENSIONS = 64
EMBED_PRIORITY = 64
"""Sooner than the 128 of the files: what has been read is finished before more is begun."""
WORD = re.compile(r"\w+")


class Digest(NamedTuple):
    """What is left of a document that was read."""

    characters: int
    words: int
    chunks: list[bytes]
    """A fingerprint per chunk of 200 words: equal where documents repeat one another."""


class Ingestion:
    """Turns files into chunks and chunks into vectors. Handlers run in many threads at once."""

    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        self.digests: dict[str, Digest] = {}
        self.vectors: dict[str, list[float]] = {}

    def ingest(self, lease: JobRecord) -> None:
        """Read the file whose path is the payload; have its most frequent words embedded."""
        path = os.fsdecode(lease.payload)
        characters, chunks, counts = 0, list[bytes](), Counter[str]()
        for text in read_pieces(Path(path), lease.kind.removeprefix("ingest:")):
            if characters:  # a large file: say that we are alive and how far we are, or learn that the lease is lost
                self._queue.checkpoint(lease, b"%d characters read" % characters)
            words = WORD.findall(text.lower())
            chunks += (_fingerprint(words[at : at + CHUNK_WORDS]) for at in range(0, len(words), CHUNK_WORDS))
            counts.update(words)
            characters += len(text)
        self.digests[path] = Digest(characters, counts.total(), chunks)
        self._queue.stats(lease, f"{counts.total():,} words, {len(chunks):,} chunks")
        self._queue.enqueue(
            lease.scope,
            "embed",
            json.dumps({"path": path, "words": dict(counts.most_common(TOP_WORDS))}).encode(),
            priority=EMBED_PRIORITY,
            idempotency_key=f"embed:{lease.job_id}",
        )

    def embed(self, lease: JobRecord) -> None:
        """Hash the words of one document into a vector of length 1."""
        document = json.loads(lease.payload)
        vector = [0.0] * DIMENSIONS
        for word, count in document["words"].items():
            code = crc32(word.encode())
            vector[code % DIMENSIONS] += count if code & 0x8000_0000 else -count
        length = hypot(*vector) or 1.0
        self.vectors[document["path"]] = [value / length for value in vector]


def _fingerprint(words: list[str]) -> bytes:
    return blake2b(" ".join(words).encode(), digest_size=8).digest()
