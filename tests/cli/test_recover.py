"""telha recover: the operator's own choice, told in full."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

from click.testing import Result

from telha_queue.config import QueueConfig
from telha_queue.queue import Queue
from telha_queue.scope import Scope

Telha = Callable[..., Result]


def test_a_damaged_queue_is_refused_until_it_is_recovered_and_what_is_missing_is_told(path: Path, telha: Telha) -> None:
    with Queue.open(path, QueueConfig(durability="os")) as queue:
        for _ in range(100):
            queue.enqueue(Scope.SYSTEM, "x")
    [log] = path.glob("*.log")
    os.truncate(log, log.stat().st_size // 2)
    refused = telha("stats")
    assert refused.exit_code == 5
    assert f"{log.name} has" in refused.stderr
    told = json.loads(telha("recover", "--json").stdout)
    assert log.name in told["damage"][0]
    assert 50 < told["lost_rows"] < 150
    assert telha("stats").exit_code == 0
    assert telha("recover").stdout == "nothing is missing\n"
