"""The demo: ingest a folder of real files with worker threads, lose a worker on the way, repair a poisoned job.

Reading order: worker.py, the loop of a worker in the verbs of the queue; work.py, what is done for each job; then this
file, which sets the stage and looks on. Run it with `make demo`; README.md says what there is to see.
"""

from __future__ import annotations

import argparse
import gzip
import os
import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event

from documents import Document, find_documents
from progress import Progress
from report import Report, Story
from work import Ingestion
from worker import Worker

from telha_queue import Exact, JobRecord, JobSpec, JobState, Queue, QueueConfig, Scope
from telha_queue.errors import JobError, LeaseConflict

DOCUMENTS = Path("/usr/share/doc")
QUEUE = Path(__file__).resolve().parents[1] / "build" / "demo-queue"

LIBRARY, ARCHIVE = Scope.named("library"), Scope.named("archive")

CONFIG = QueueConfig(
    durability="group",  # all writers share an fsync every 50 ms, which is quick on any disk
    lease_ttl_secs=10,
    max_attempts=3,
    backoff_base_secs=1,  # then 2 s: a demo has less patience than the default of 10, 40, 160 s and so on
    backoff_factor=2,
    reaper_interval_secs=0.25,
)
PARSERS = 3
BATCH_JOBS = 1000
CRASHED_LEASES = 24
CRASHED_TTL_SECS = 1
INTERRUPTED = 130
"""Exit code of a program that Ctrl-C ended."""


class PoisonedFile:
    """A compressed file that arrived cut short: whoever reads it fails, until it is repaired."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "poisoned.txt.gz"
        self._content = gzip.compress(b"The second half of this file was missing.\n" * 50, mtime=0)
        self.path.write_bytes(self._content[: len(self._content) // 2])

    def repair(self) -> None:
        self.path.write_bytes(self._content)


def ingest(queue: Queue, documents: list[Document], poisoned: PoisonedFile) -> Report:
    """The whole story, from files to the report."""
    work = Ingestion(queue)
    suspect = plan(queue, documents, poisoned)
    abandoned = crash(queue, work)
    files = len(documents) + 1

    worker_ended = Event()
    progress = Progress(queue, jobs=1 + 2 * files, worker_ended=worker_ended)
    queue.start_reaper()
    for number in range(1, PARSERS + 1):
        Worker(f"parser-{number}", queue, "ingest:", work.ingest, worker_ended).start()
    Worker("embedder", queue, Exact("embed"), work.embed, worker_ended).start()

    progress.watch()
    dead = repair(queue, poisoned)
    secs = progress.watch()
    story = Story(files, secs, abandoned, submit_late(queue, abandoned[0]), suspect.job_id, dead)
    return Report(queue, story, work)


def plan(queue: Queue, documents: list[Document], poisoned: PoisonedFile) -> JobRecord:
    """Enqueue one job per file, as a job of the system itself; returns that of the poisoned file."""
    queue.enqueue(Scope.SYSTEM, "plan")
    lease = queue.lease_next(Scope.SYSTEM, Exact("plan"), worker_id="planner")
    assert lease is not None
    suspect = queue.enqueue(ARCHIVE, "ingest:text", os.fsencode(poisoned.path))
    folders = sorted({document.folder for document in documents})
    for scope, owned in (LIBRARY, set(folders[::2])), (ARCHIVE, set(folders[1::2])):
        jobs = [
            JobSpec(f"ingest:{document.format}", os.fsencode(document.path))
            for document in documents
            if document.folder in owned
        ]
        for first in range(0, len(jobs), BATCH_JOBS):
            queue.enqueue_many(scope, jobs[first : first + BATCH_JOBS])
    queue.stats(lease, f"{len(documents) + 1} files in {len(folders)} folders")
    queue.complete(lease)
    return suspect


def crash(queue: Queue, work: Ingestion) -> list[JobRecord]:
    """Lease many jobs as a worker that is never heard of again; returns its leases.

    It has done the first job, the enqueueing of the next included, and dies before it can say so.
    """
    leases = queue.lease_many(
        LIBRARY, CRASHED_LEASES, "ingest:", worker_id="crashed-worker", lease_ttl_secs=CRASHED_TTL_SECS
    )
    work.ingest(leases[0])
    return leases


def repair(queue: Queue, poisoned: PoisonedFile) -> list[JobRecord]:
    """What an operator does: look at the dead jobs, remove the cause, retry them. Returns them as they were found."""
    dead = queue.list(state=JobState.DEAD)
    for job in dead:
        print(f"\nDead after {job.attempts} attempts: {job.kind} {os.fsdecode(job.payload)}")
        print(f"  {job.events[-1].detail}")
    poisoned.repair()
    for job in dead:
        queue.retry(job.scope, job.job_id)
    print("Repaired the file and retried.", flush=True)
    return dead


def submit_late(queue: Queue, lease: JobRecord) -> LeaseConflict | None:
    """The crashed worker comes back and submits a job that is no longer its own; returns what it is told."""
    try:
        queue.complete(lease)
    except LeaseConflict as conflict:
        return conflict
    return None


def clear(path: Path) -> None:
    """Remove the queue of an earlier run. Anything else that is there stays, and ends the demo."""
    if not path.is_dir() or not any(path.iterdir()):
        return
    with Queue.open(path, CONFIG, create=False) as earlier:  # refused while another process has it
        is_empty = not earlier.scopes()
        is_ours = bool(earlier.list(Scope.SYSTEM, kinds=Exact("plan"), limit=1))
    if not is_empty and not is_ours:
        sys.exit(f"demo: {path} holds a queue that is not the demo's; name another directory with --queue")
    shutil.rmtree(path)


def run(folder: Path, path: Path) -> int:
    """Ingest a folder through a queue at a path and tell of it; returns the exit code."""
    if not folder.is_dir():
        sys.exit(f"demo: {folder} is not a folder")
    documents = find_documents(folder, besides=path)
    if not documents:
        sys.exit(f"demo: there are no text files in {folder}")
    clear(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix="telha-demo-") as scratch:
        try:
            with Queue.open(path, CONFIG) as queue:
                print(
                    f"Ingesting {len(documents):,} files of {folder} and a poisoned one."
                    f"\nDurability {CONFIG.durability!r}: fsynced every {CONFIG.group_sync_ms} ms.",
                    flush=True,
                )
                report = ingest(queue, documents, PoisonedFile(Path(scratch)))
        except KeyboardInterrupt:
            print_interruption(path)
            return INTERRUPTED
    report.print_summary()
    report.print_crash()
    report.print_life()
    print_hint(path)
    for claim in report.failed_checks():
        print(f"demo: not true: {claim}", file=sys.stderr)
    return 1 if report.failed_checks() else 0


def print_interruption(path: Path) -> None:
    """What is on disk after Ctrl-C, from the disk."""
    with Queue.open(path, CONFIG, create=False) as queue:
        counts = queue.counts()
    print(
        f"\nInterrupted: {counts[JobState.COMPLETED]:,} of {sum(counts.values()):,} jobs are completed."
        f"\nThe {counts[JobState.LEASED]:,} that are leased are taken back by the reaper of the next owner"
        " after their deadlines."
    )
    print_hint(path)


def print_hint(path: Path) -> None:
    """Where to go from here, as it may be pasted into this terminal."""
    telha = Path(sys.executable).with_name("telha")
    command = os.path.relpath(telha) if telha.exists() else "telha"
    print(f"\nThe queue is still there: {command} jobs list --path {os.path.relpath(path)}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Ingest a folder of real files through a telha-queue.")
    parser.add_argument("folder", type=Path, nargs="?", default=DOCUMENTS, help="default: %(default)s")
    parser.add_argument("--queue", type=Path, default=QUEUE, help="directory of the queue; default: %(default)s")
    options = parser.parse_args()
    try:
        sys.exit(run(options.folder.resolve(), options.queue.resolve()))
    except (JobError, OSError, EOFError) as error:
        sys.exit(f"demo: {error}")
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    main()
