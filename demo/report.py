"""What the demo tells at its end: the summary, one job's life, and whether all is as it must be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from textwrap import fill
from typing import NamedTuple
from uuid import UUID

from work import Ingestion

from telha_queue import JobRecord, JobState, Queue
from telha_queue.errors import LeaseConflict

PAGE_JOBS = 1000
LINE_CHARS = 100
STATES = [JobState.PENDING, JobState.LEASED, JobState.COMPLETED, JobState.DEAD]


class Story(NamedTuple):
    """What happened in one run, as the main thread lived it."""

    files: int
    secs: float
    abandoned: list[JobRecord]
    """The leases of the worker that crashed."""
    refusal: LeaseConflict | None
    """What that worker was told when it came back."""
    poisoned_id: UUID
    """The job of the damaged file."""
    dead: list[JobRecord]
    """What the operator found dead, and retried."""


class Report:
    """Reads every job once, when it is built; prints and judges after that."""

    def __init__(self, queue: Queue, story: Story, work: Ingestion) -> None:
        self._story = story
        self._work = work
        self._names = {scope: str(scope) for scope in queue.scopes()}  # the store knows them by name
        self._counts = {name: queue.counts(scope) for scope, name in self._names.items()}
        self._jobs = {job.job_id: job for job in every_job(queue)}
        self._events = Counter(event.transition for job in self._jobs.values() for event in job.events)
        self._kinds = Counter(job.kind.partition(":")[0] for job in self._jobs.values())
        self._taken_back = sum(self._was_taken_back(lease) for lease in story.abandoned)

    def print_summary(self) -> None:
        """Speed, results, states per tenant, and all trails counted."""
        story, digests = self._story, self._work.digests.values()
        characters, words = sum(digest.characters for digest in digests), sum(digest.words for digest in digests)
        chunks = [chunk for digest in digests for chunk in digest.chunks]
        print(
            f"\n{len(self._jobs):,} jobs in {story.secs:.1f} s: {len(self._jobs) / story.secs:,.0f} a second,"
            f" the reading of {characters / 1e6:,.1f} million characters included."
            f"\n{words:,} words in {len(chunks):,} chunks, {len(set(chunks)):,} of them distinct;"
            f" {len(self._work.vectors):,} vectors.\n"
        )
        print(" " * 10 + "".join(f"{state.name.lower():>11}" for state in STATES))
        for name, counts in self._counts.items():
            print(f"  {name:8}" + "".join(f"{counts[state]:11,}" for state in STATES))
        trails = ", ".join(f"{count:,} {transition}" for transition, count in self._events.most_common())
        print("\n" + fill(f"In all trails: {trails}.", LINE_CHARS))

    def print_crash(self) -> None:
        """How the queue got over a worker that was lost, and over its return."""
        abandoned, refusal = self._story.abandoned, self._story.refusal
        print(
            f"\n{abandoned[0].worker_id} died with {len(abandoned)} leases;"
            f" {self._taken_back} were taken back by the reaper and finished by others."
        )
        if refusal is not None:
            print(f"Back again, it submitted one of them and got\n  LeaseConflict: {refusal}")

    def print_life(self) -> None:
        """The trail of the poisoned job, with the time since the step before."""
        job = self._jobs[self._story.poisoned_id]
        print(f"\nThe life of job {job.job_id}, {job.kind} in {self._names[job.scope]}:")
        before = job.events[0].at
        for event in job.events:
            at = datetime.fromtimestamp(event.at / 1e6)
            since = f"{(event.at - before) / 1e6:+9.4f} s"
            step = f"  {at:%H:%M:%S.%f} {since}  {event.transition:10} {event.detail or ''}".rstrip()
            print(step if len(step) <= LINE_CHARS else step[: LINE_CHARS - 1] + "…")
            before = event.at

    def failed_checks(self) -> list[str]:
        """What should be true and is not."""
        story, files, jobs = self._story, self._story.files, len(self._jobs)
        completed = sum(counts[JobState.COMPLETED] for counts in self._counts.values())
        died = ", ".join(f"{job.kind} {job.job_id}" for job in story.dead) or "none"
        checks = {
            f"all {jobs:,} jobs are completed ({completed:,} are)": completed == jobs,
            f"{files:,} files have as many ingest jobs ({self._kinds['ingest']:,})": self._kinds["ingest"] == files,
            f"{files:,} files have as many embed jobs ({self._kinds['embed']:,})": self._kinds["embed"] == files,
            f"{files:,} files have as many vectors ({len(self._work.vectors):,})": len(self._work.vectors) == files,
            f"each job was completed once ({self._events['completed']:,})": self._events["completed"] == jobs,
            f"every abandoned lease was taken back ({self._taken_back})": self._taken_back == len(story.abandoned),
            "the stale submit was refused": story.refusal is not None,
            f"only the poisoned job died ({died})": [job.job_id for job in story.dead] == [story.poisoned_id],
        }
        return [claim for claim, holds in checks.items() if not holds]

    def _was_taken_back(self, lease: JobRecord) -> bool:
        """Whether the reaper ended that lease and somebody else finished the job."""
        job = self._jobs[lease.job_id]
        was_reaped = any(event.transition == "reaped" for event in job.events)
        return was_reaped and job.state == JobState.COMPLETED and job.lease_generation > lease.lease_generation


def every_job(queue: Queue) -> Iterator[JobRecord]:
    """All jobs of all scopes, page by page."""
    page = queue.list(limit=PAGE_JOBS)
    while page:
        yield from page
        page = queue.list(limit=PAGE_JOBS, after=page[-1])
