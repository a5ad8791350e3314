"""`python -m bench.peers`: measure telha-queue beside its peers, or check the adapters with --smoke."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bench.peers.adapters import PEERS, SUBJECT
from bench.peers.measure import WARM_UP_CALLS
from bench.peers.protocol import Durability, Peer
from bench.peers.report import Run, write
from bench.peers.rounds import Failures, run_rounds, scratch
from bench.peers.server import stop_on_sigterm
from bench.peers.smoke import smoke

PAGE = Path(__file__).resolve().parents[2] / "docs" / "performance-peers.md"
IN_MEMORY = ("tmpfs", "ramfs")  # an fsync is free there


def main() -> int:
    options = arguments()
    stop_on_sigterm()
    file_system = file_system_of(options.directory)
    if file_system in IN_MEMORY:
        print(f"--directory is on {file_system}, where an fsync costs nothing: choose one on a disk", file=sys.stderr)
        return 2
    wanted = [peer for peer in PEERS if not options.peers or any(word in peer.name.lower() for word in options.peers)]
    missing, versions = Failures(), {SUBJECT.name: SUBJECT.version()}
    peers = [peer for peer in wanted if is_there(peer, missing, versions)]
    tell(f"beside {versions[SUBJECT.name]}: " + ", ".join(f"{peer.name} {versions[peer.name]}" for peer in peers))
    failures = check([SUBJECT, *peers], options.directory)
    if options.smoke or SUBJECT.name in failures:
        return report_failures(missing, failures)
    load = os.getloadavg()[0]
    cells = run_rounds(SUBJECT, peers, options.repeats, options.seconds, options.directory, failures, tell)
    left_out = {name: f"skipped: {why}" for name, why in missing.items()}
    left_out |= {name: f"failed: {why}" for name, why in failures.items()}
    facts = (options.repeats, options.seconds, WARM_UP_CALLS, load, file_system)
    run = Run(SUBJECT, peers, versions, left_out, cells, *facts)
    print(write(run, options.output))
    return report_failures(missing, failures)


def check(peers: Sequence[Peer], parent: Path) -> Failures:
    """Put every peer through the smoke test in every class; a peer that fails it is not measured."""
    failures = Failures()
    for peer in peers:
        try:
            for durability in Durability:
                with scratch(parent) as directory:
                    smoke(peer, durability, directory)
        except Exception as error:  # noqa: BLE001  whatever a peer raises is the finding
            failures.note(peer, error)
        tell(f"smoke: {peer.name}: {failures.get(peer.name, 'ok')}")
    return failures


def is_there(peer: Peer, missing: Failures, versions: dict[str, str]) -> bool:
    try:
        versions[peer.name] = peer.version()
    except Exception as error:  # noqa: BLE001  a package may be absent or broken in many ways
        missing.note(peer, error)
        return False
    return True


def report_failures(missing: Failures, failures: Failures) -> int:
    for name, why in missing.items():
        print(f"skipped {name}: {why}", file=sys.stderr)
    for name, why in failures.items():
        print(f"FAILED {name}: {why}", file=sys.stderr)
    return 1 if failures else 0


def file_system_of(directory: Path) -> str:
    """Name the type of the file system, such as ext4, or "unknown file system"."""
    device = os.stat(directory).st_dev
    wanted = f"{os.major(device)}:{os.minor(device)}"
    try:
        mounts = Path("/proc/self/mountinfo").read_text().splitlines()
    except OSError:
        mounts = []
    types = [line.split(" - ")[1].split()[0] for line in mounts if line.split()[2] == wanted]
    return types[0] if types else "unknown file system"


def tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.peers", description=__doc__)
    parser.add_argument("peers", nargs="*", type=str.lower, help="parts of names of peers; all without any")
    parser.add_argument("--smoke", action="store_true", help="check the adapters, measure nothing")
    parser.add_argument("--repeats", type=int, default=3, help="rounds; default 3")
    parser.add_argument("--seconds", type=float, default=0.8, help="limit for each half of a cell; default 0.8")
    parser.add_argument(
        "--directory", type=Path, default=Path(tempfile.gettempdir()), help="where data goes, on a disk"
    )
    parser.add_argument(
        "--output", type=Path, default=PAGE, help="the page to write; default docs/performance-peers.md"
    )
    options = parser.parse_args()
    unknown = [word for word in options.peers if not any(word in peer.name.lower() for peer in PEERS)]
    if unknown:
        parser.error(f"no peer is called {unknown[0]}; there are {', '.join(peer.name for peer in PEERS)}")
    return options


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:  # the servers are stopped and the directories gone by now
        sys.exit(130)
