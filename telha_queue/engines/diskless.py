"""What an engine without a disk answers to calls that are about one."""

from __future__ import annotations


class Diskless:
    """Nothing to take to disk, to open again or to recover."""

    recovered = None

    def flush(self) -> None:
        """Whatever is acknowledged is as safe as it gets, unless the engine is closed."""
        self.last_seen_us()

    def reopen(self) -> None:
        """As flush."""
        self.last_seen_us()

    def last_seen_us(self) -> int:
        """A verb of the engine that changes nothing."""
        raise NotImplementedError
