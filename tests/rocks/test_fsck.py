"""A check finds each breach of an invariant of docs/format.md, says whose it is, and repairs what can be repaired."""

from __future__ import annotations

import threading

import pytest
from fsck_cases import ACME, CASES, GLOBEX, LARGE, QUICK, STRANGER, filled, with_record

from telha_queue.errors import StorageError, StoreClosed
from telha_queue.job import JobSpec
from telha_queue.queue import Queue
from telha_queue.upkeep import FindingKind, FsckReport


def kinds(counts):
    return sorted(kind.value for kind, count in counts.items() for _ in range(count))


@pytest.mark.parametrize(("damage", "found", "repaired"), CASES.values(), ids=CASES)
def test_a_damage_is_found_named_and_repaired(path, clock, ldb, damage, found, repaired):
    jobs = filled(path, clock)
    rows_of_jobs = ldb.rows("jobs")
    damage(ldb, jobs)
    damaged = ldb.rows("jobs")
    with Queue.open(path, QUICK, clock) as queue:
        report = queue.fsck()
        assert kinds(report.found) == sorted(found)
        assert report.repaired == {}
        assert not report.is_clean
        assert [finding.kind.value for finding in report.findings] == found
        assert queue.fsck() == report
        mended = queue.fsck(repair=True)
        assert mended.found == report.found
        assert kinds(mended.repaired) == repaired
        assert kinds(queue.fsck().found) == sorted(set(found) - set(repaired))
        if mended.is_clean:
            assert queue.fsck() == FsckReport(report.jobs, {}, {})
    assert ldb.rows("jobs") == damaged
    if damaged == rows_of_jobs and mended.is_clean:
        with Queue.open(path, QUICK, clock) as queue:
            assert [queue.find(job.job_id).value for job in jobs] == [job.value for job in jobs]
            assert queue.enqueue(ACME, "a", idempotency_key="k0").job_id == jobs[0].job_id
            assert [queue.find(job.job_id).payload for job in jobs] == [b"", LARGE, b"", LARGE, b"", b""]


def test_every_kind_of_finding_has_a_case():
    cased = {kind for _, found, _ in CASES.values() for kind in found}
    assert cased | {"job_time", "floor_wrong"} == {kind.value for kind in FindingKind}


def test_a_sound_store_is_clean(path, clock, ldb):
    jobs = filled(path, clock)
    before = ldb.all_rows()
    with Queue.open(path, QUICK, clock) as queue:
        for repair in (False, True):
            assert queue.fsck(repair=repair) == FsckReport(len(jobs), {}, {})
    assert ldb.all_rows() == before


def test_an_id_of_another_time_is_found(path, clock, ldb):
    [first, *_] = jobs = filled(path, clock)
    key = first.key[:42] + STRANGER
    ldb.put("jobs", key, with_record(first, job_id=STRANGER, idempotency_key=None))
    ldb.put("ids", STRANGER, ACME.key + first.key[33:42])
    with Queue.open(path, QUICK, clock) as queue:
        report = queue.fsck(repair=True)
        assert (report.jobs, kinds(report.found), report.repaired) == (len(jobs) + 1, ["job_time"], {})


@pytest.mark.parametrize("row", ["ids", "payloads", "results", "idempotency"])
def test_no_orphan_is_removed_while_a_damaged_key_may_be_that_of_its_job(path, clock, ldb, row):
    jobs = filled(path, clock)
    ldb.delete("jobs", jobs[3].key)
    ldb.put("jobs", jobs[3].key + b"?", jobs[3].value)
    before = ldb.all_rows()
    with Queue.open(path, QUICK, clock) as queue:
        report = queue.fsck(repair=True)
        assert kinds(report.found) == ["id_orphan", "job_key", "key_orphan", "payload_orphan", "result_orphan"]
        assert report.repaired == {}
        assert {finding.job_id for finding in report.findings} == {None, jobs[3].job_id}
    assert ldb.rows(row) == before[row]


def test_the_side_rows_of_a_job_that_is_gone_are_removed_and_its_key_is_free_again(path, clock, ldb):
    jobs = filled(path, clock)
    ldb.delete("jobs", jobs[3].key)
    with Queue.open(path, QUICK, clock) as queue:
        report = queue.fsck(repair=True)
        assert kinds(report.repaired) == ["id_orphan", "key_orphan", "payload_orphan", "result_orphan"]
        assert report.is_clean
        assert {finding.job_id for finding in report.findings} == {jobs[3].job_id}
        assert queue.fsck() == FsckReport(len(jobs) - 1, {}, {})
        assert queue.enqueue(GLOBEX, "d", idempotency_key="k3").job_id not in {job.job_id for job in jobs}


def test_a_key_whose_job_does_not_decode_keeps_its_row(path, clock, ldb):
    jobs = filled(path, clock)
    ldb.put("jobs", jobs[3].key, jobs[3].value[:9])
    before = ldb.all_rows()
    with Queue.open(path, QUICK, clock) as queue:
        assert kinds(queue.fsck(repair=True).found) == ["job_record"]
    assert ldb.all_rows() == before


def test_more_damage_than_memory_may_hold_is_counted_and_repaired_in_bounded_writes(path, clock, ldb):
    jobs = 66_000
    with Queue.open(path, QUICK, clock) as queue:
        for number in range(0, jobs, 1000):
            specs = [JobSpec("x", idempotency_key=str(number + i)) for i in range(1000)]
            queue.enqueue_many(ACME, specs, atomic=True)
    ldb._run("ids", "deleterange", "0x00", "0xff")
    with Queue.open(path, QUICK, clock) as queue:
        report = queue.fsck()
        assert (report.found, report.is_partial) == ({FindingKind.ID_MISSING: jobs}, True)
        assert len(report.findings) == 1000
        mended = queue.fsck(repair=True)
        assert mended.repaired == {FindingKind.ID_MISSING: jobs}
        assert queue.fsck() == FsckReport(jobs, {}, {})


def test_closing_the_queue_ends_a_check(path, together):
    queue = Queue.open(path, QUICK)
    for number in range(30):
        queue.enqueue_many(ACME, [JobSpec("x", idempotency_key=f"{number} {i}") for i in range(1000)])
    checks = 0

    def check():
        nonlocal checks
        while True:
            try:
                assert queue.fsck(repair=True).is_clean
            except StoreClosed:
                return
            checks += 1
            begun.set()

    begun = threading.Event()
    together(check, check, lambda: begun.wait(20) and queue.close())
    assert checks


def test_a_check_begins_anew_when_the_queue_is_opened_again_beneath_it(path, together):
    with Queue.open(path, QUICK) as queue:
        for number in range(10):
            queue.enqueue_many(ACME, [JobSpec("x", idempotency_key=f"{number} {i}") for i in range(1000)])
        checks = together(
            lambda: [queue.fsck(repair=True) for _ in range(6)],
            lambda: [queue.fsck() for _ in range(6)],
            lambda: [queue.reopen() for _ in range(6)],
        )[:2]
        assert {report.jobs for reports in checks for report in reports} == {10_000}
        assert all(report.is_clean for reports in checks for report in reports)


def test_a_check_that_is_cut_short_again_and_again_gives_up_and_says_so(path, together):
    given_up = threading.Event()

    def check():
        try:
            while True:  # one may come through between two reopenings
                assert queue.fsck(repair=True).is_clean
        except StorageError as error:
            given_up.set()
            return str(error), error.outcome

    def reopen():
        while not given_up.is_set():
            queue.reopen()

    with Queue.open(path, QUICK) as queue:
        for number in range(10):
            queue.enqueue_many(ACME, [JobSpec("x", idempotency_key=f"{number} {i}") for i in range(1000)])
        (text, outcome), _ = together(check, reopen)
        assert "began anew 8 times, because the store was opened again" in text
        assert outcome == "none"
        assert queue.fsck() == FsckReport(10_000, {}, {})


def test_a_check_beside_workers_sees_one_moment_and_repairs_harm_nobody(path, together):
    stop = threading.Event()

    def work(number):
        for i in range(300):
            queue.enqueue(ACME, "x", LARGE if i % 7 == 0 else b"", idempotency_key=f"{number} {i}")
            lease = queue.lease_next(ACME, worker_id="w")
            queue.complete(lease) if i % 3 else queue.release(lease)
        stop.set()

    def check():
        reports = []
        while not stop.is_set():
            reports.append(queue.fsck(repair=len(reports) % 2 == 1))
        return reports

    with Queue.open(path, QUICK) as queue:
        *_, reports = together(lambda: work(1), lambda: work(2), check)
        assert reports
        assert all(report.is_clean and not report.found for report in reports)
        assert queue.fsck() == FsckReport(600, {}, {})
