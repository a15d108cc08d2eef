#!/usr/bin/env python3
"""The procedures of workloads over HTTP: `eyewall serve` against other servers, stores under one server, and files by web frameworks
(bench/drivers/README.md).

EYEWALL_PROGRAM, BENCH_HTTP_PROGRAM and BENCH_FRAMEWORKS_PROGRAM name programs to measure; the driver builds those that no variable
names. bench/METHODOLOGY.md describes the work, bench/BIAS.md whom it favours.
"""
import os
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.dont_write_bytecode = True
sys.path[:0] = [str(HERE.parent / "python"), str(ROOT / "scripts/common.d")]
import driver  # noqa: E402
import protocol  # noqa: E402
from servers import Failed  # noqa: E402


def main():
    if len(sys.argv) > 1:
        protocol.refuse("it takes no arguments, and answers a request on standard input; to measure: make bench ARGS=serve")
    protocol.end_by_signals()
    os.chdir(ROOT)
    try:
        driver.run()
    except (Failed, OSError) as error:
        print(f"web.py: {error}", file=sys.stderr)
        return 3
    return 0


sys.exit(main())
