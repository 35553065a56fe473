#!/usr/bin/env python3
"""Runs the same model in SimPy and in freshet, one after the other, and prints
the ratio of their processor times and how far their results are apart.

    go build -o freshet ./cmd/freshet
    /usr/bin/python3 lab/bench/peers/simpy/compare.py ./freshet
"""

import json
import os
import resource
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
FIELD = ["--pages", "200000", "--time", "2000000", "--changes", "5", "--requests", "10"]
RUNS = 10  # of freshet, so that there is something to measure: half before SimPy, half after


def cpu(command, times=1):
    """Returns the processor seconds of one run and its JSON."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    for _ in range(times):
        out = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return used / times, json.loads(out)


def main():
    freshet = [sys.argv[1] if len(sys.argv) > 1 else "freshet", "--json", "monitor", "run"]
    simpy = [sys.executable, os.path.join(HERE, "model.py")]
    nothing = ["--pages", "1", "--time", "1", "--variant", "plain:1"]
    start, _ = cpu(freshet + nothing, RUNS)
    start_simpy, _ = cpu(simpy + nothing, RUNS)
    print(f"starting takes {start_simpy:.3f} s of processor time with SimPy, {start:.3f} s with freshet")
    print(
        f"{'variant':16} {'SimPy, s':>9} {'freshet, s':>11} {'ratio':>6} {'without starting':>17} {'events':>9} "
        f"{'fresh, %':>17} {'GB':>15} {'mean delay':>15}"
    )
    for variant in ["plain:5", "conditional:3", "sensor"]:
        for per_page in [["--per-page"], []]:
            before, a = cpu(freshet + ["--variant", variant] + FIELD, RUNS // 2)
            theirs, b = cpu(simpy + ["--variant", variant] + FIELD + per_page)
            after, _ = cpu(freshet + ["--variant", variant] + FIELD, RUNS // 2)
            ours = (before + after) / 2
            name = variant + ("" if per_page else " merged")
            print(
                f"{name:16} {theirs:9.2f} {ours:11.4f} {theirs / ours:6.0f} {(theirs - start_simpy) / (ours - start):17.0f} {b['events']:9} "
                f"{b['freshness_mean']:8.3f} {a['freshness_mean']:8.3f} {b['bytes'] / 1e9:7.3f} {a['bytes'] / 1e9:7.3f} "
                f"{b['delay']['mean']:7.0f} {a['delay']['mean']:7.0f}",
                flush=True,
            )
    print("of two figures the first is SimPy's; merged: one process for all changes and one for all requests")


if __name__ == "__main__":
    main()
