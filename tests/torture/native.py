"""T17 and T20: C++ of the core by itself, built with sanitizers: fuzzed bytes, and threads over what a store shares."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from random import Random

from telha_queue._codec import decode_key, encode_key
from telha_queue.errors import InvalidArgument
from tests.torture.protocol import Harness, Request, Result

ROOT = Path(__file__).resolve().parents[2]
NATIVE, FUZZER = ROOT / "tests" / "native", ROOT / "ext" / "fuzz_record.cc"
CHECKS, RACES, KEEPER = NATIVE / "checks.cc", NATIVE / "races.cc", NATIVE / "keeper.cc"
GOLDEN = ROOT / "tests/unit/golden/record_v1.json"
FLAGS = ("-std=c++20", "-O1", "-g", "-pthread", "-Wall", "-Wextra", f"-I{ROOT / 'ext'}", "-I/usr/include")
COMPILE_SECS = 300
ROUNDS_OF_A_PROGRAM = 100
LIMIT_SECS = 600
FUZZ_SECS = {"ci": 10, "nightly": 600}
INPUTS_OF_A_KEY = 100


def built(source: Path, sanitizers: str, folder: Path, compiler: str = "c++") -> Path:
    """Compile a program with sanitizers into a folder, unless it is there."""
    program = folder / f"{source.stem}-{sanitizers.replace(',', '-')}"
    if not program.exists():
        sanitize = (f"-fsanitize={sanitizers}", "-fno-sanitize-recover=all")
        command = [compiler, *FLAGS, *sanitize, str(source), "-o", str(program)]
        subprocess.run(command, check=True, capture_output=True, timeout=COMPILE_SECS)
    return program


def run_races(request: Request) -> Result:
    """So many rounds, from another seed each hundred."""
    program = built(RACES, "thread", request.folder)
    done = aborts = hangs = 0
    faults = []
    for first in range(0, request.wanted, ROUNDS_OF_A_PROGRAM):
        rounds = min(ROUNDS_OF_A_PROGRAM, request.wanted - first)
        words = [str(program), str(request.chance("races", first).randrange(2**31)), str(rounds)]
        try:
            ended = subprocess.run(words, capture_output=True, text=True, timeout=LIMIT_SECS, check=False)
        except subprocess.TimeoutExpired:
            hangs += 1
            faults.append(f"{words[1:]} hung")
            continue
        aborts += ended.returncode < 0
        if ended.returncode != 0:
            faults.append(f"{words[1:]} ended with {ended.returncode}: {ended.stderr[:3000]}")
        done += rounds
    return Result(done, aborts=aborts, hangs=hangs, faults=tuple(faults))


def run_fuzz(request: Request) -> Result:
    """So many inputs or so many seconds, whatever is over first; and keys, a hundredth as many."""
    compiler = fuzzing_compiler()
    if compiler is None:
        return Result(0, skipped="no clang")
    try:
        program = built(FUZZER, "fuzzer,address,undefined", request.folder, compiler)
    except subprocess.CalledProcessError as error:
        return Result(0, skipped=f"no libFuzzer: {error.stderr[-200:]!r}")
    corpus = request.folder / "corpus"
    corpus.mkdir()
    for name, case in json.loads(GOLDEN.read_text()).items():
        (corpus / name).write_bytes(bytes.fromhex(case["key"] + case["value"]))
    limits = [f"-runs={request.wanted}", f"-max_total_time={FUZZ_SECS[request.scale]}", "-max_len=4096"]
    seed = f"-seed={request.seed % 2**31 or 1}"
    more = ["-print_final_stats=1", "-timeout=10", f"-artifact_prefix={request.keep or request.folder}/"]
    words = [str(program), *limits, seed, *more, str(corpus)]
    ended = subprocess.run(words, capture_output=True, text=True, errors="replace", timeout=2 * LIMIT_SECS, check=False)
    told = re.search(r"number_of_executed_units: (\d+)", ended.stderr)
    faults = [f"the fuzzer ended with {ended.returncode}: {ended.stderr[-3000:]}"] if ended.returncode != 0 else []
    keys = request.wanted // INPUTS_OF_A_KEY
    faults += fuzz_keys(request.chance("keys"), keys)
    done = int(told[1]) if told else 0
    counted = {"keys": keys, "inputs kept because they reached new code": len(list(corpus.iterdir()))}
    return Result(done, aborts=int(ended.returncode != 0), counted=counted, faults=tuple(faults))


def fuzz_keys(chance: Random, count: int) -> list[str]:
    """Any 58 bytes are taken apart and put together again; any other number is refused, and parts out of range."""
    faults = []
    for _ in range(count):
        key = chance.randbytes(58 if chance.random() < 0.9 else chance.randrange(120))
        try:
            right = encode_key(*decode_key(key)) == key and len(key) == 58
        except InvalidArgument:
            right = len(key) != 58 or key[32] > 4 or key[34] > 127
        if not right:
            faults.append(f"the key {key.hex()} is read wrongly")
    return faults[:10]


def fuzzing_compiler() -> str | None:
    """Clang, under whichever name it is installed."""
    names = ["clang++", *(f"clang++-{version}" for version in range(25, 13, -1))]
    return next((found for name in names if (found := shutil.which(name, path=os.environ.get("PATH")))), None)


RACES_HARNESS = Harness(
    name="races",
    tests="T20",
    about="windows, claims, leased rows, scopes and waiters of a store under its mutex, used by up to 11 threads over "
    "rows in memory, built with ThreadSanitizer: each job is handed out to one, nobody sleeps beside one, no report",
    unit="rounds",
    ci=20,
    nightly=10_000,
    run=run_races,
)
FUZZ = Harness(
    name="fuzz",
    tests="T17",
    about="libFuzzer with AddressSanitizer and UndefinedBehaviorSanitizer on keys and records as they are read from "
    "disk: no report, no large allocation for a small input, and what is accepted is written again as it was",
    unit="inputs",
    ci=150_000,  # of the 2,000,000 that the plan has for a change: what a few seconds have room for
    nightly=100_000_000,
    lowered="ended after ten minutes, as the plan has it",
    run=run_fuzz,
)
