#!/usr/bin/env python3
"""The monitoring model of freshet in SimPy, for measuring beside it.

Needs SimPy 3 (Debian: python3-simpy3). A robot is a process. With --per-page every
page has processes of its own for changes and requests, as the model says and the
SimCOSAR of 2005 had; else they are one process each, the superposition of the
pages' Poisson processes, which only exponential laws allow.

Prints one JSON object with the fields of `freshet lab monitor run --json`.
"""

import argparse
import json
import random
import resource
import time

import simpy

MIN_SIZE, MAX_SIZE = 65, 122880
KINDS = (1, 2, 3, 4, 5, 6)
SHARES = (0.083, 0.125, 0.125, 0.25, 0.25, 0.167)


class Model:
    def __init__(self, a):
        self.a = a
        self.rand = random.Random(a.seed)
        self.env = simpy.Environment()
        n = a.pages
        self.size = [self.rand.randint(MIN_SIZE, MAX_SIZE) for _ in range(n)]
        self.kind = [6] * n
        self.since = [None] * n  # of the first unknown change
        self.stale = 0
        self.area = 0.0
        self.last = 0.0
        self.bytes = 0
        self.events = 0
        self.real = self.detected = self.overwritten = 0
        self.delays = 0
        self.delay = 0.0
        self.running = self.most = 0

    def integrate(self):
        self.area += self.stale * (self.env.now - self.last)
        self.last = self.env.now

    def change(self, p):
        self.events += 1
        prev, kind = self.kind[p], self.rand.choices(KINDS, SHARES)[0]
        if kind == 4 and self.size[p] > MIN_SIZE:
            self.size[p] = self.rand.randint(MIN_SIZE, self.size[p] - 1)
        elif kind == 5 and self.size[p] < MAX_SIZE:
            self.size[p] = self.rand.randint(self.size[p] + 1, MAX_SIZE)
        self.kind[p] = kind
        if (kind == prev and kind in (1, 2, 3, 6)) or (kind == 6 and prev in (4, 5)):
            return
        self.real += 1
        if self.since[p] is not None:
            self.overwritten += 1
            return
        self.integrate()
        self.since[p] = self.env.now
        self.stale += 1

    def forget(self, p):
        since = self.since[p]
        if since is not None:
            self.integrate()
            self.since[p] = None
            self.stale -= 1
            self.detected += 1
        return since

    def learned(self, since):
        if since is not None:
            self.delays += 1
            self.delay += self.env.now - since

    def clock(self, rate, do, pages):
        """Calls do(page) at the points of a Poisson process."""
        while True:
            yield self.env.timeout(self.rand.expovariate(rate))
            do(pages[0] if len(pages) == 1 else self.rand.randrange(len(pages)))

    def clocks(self, count, do):
        if count == 0:
            return
        n, t = self.a.pages, self.a.time
        if self.a.per_page:
            for p in range(n):
                self.env.process(self.clock(count / t, do, [p]))
        else:
            self.env.process(self.clock(count * n / t, do, range(n)))

    def download(self, p):
        """Takes the time of a download and counts its bytes."""
        size = self.size[p]
        self.running += 1
        self.most = max(self.most, self.running)
        yield self.env.timeout(self.rand.randint(1, 40))
        self.running -= 1
        self.bytes += size
        self.events += 1

    def robot(self, first, end, ask):
        while True:
            for p in range(first, end):
                if ask:
                    yield self.env.timeout(self.rand.randint(1, 3))
                    self.events += 1
                    if self.since[p] is None:
                        continue
                if self.kind[p] > 3:
                    yield from self.download(p)
                else:
                    self.events += 1
                self.learned(self.forget(p))

    def alert(self, p):
        yield self.env.timeout(self.rand.randint(1, 3))
        self.events += 1
        since = self.forget(p)
        if self.kind[p] > 3:
            yield from self.download(p)
        self.learned(since)

    def request(self, p):
        self.events += 1
        if self.since[p] is not None:
            self.env.process(self.alert(p))

    def run(self):
        began = time.time()
        self.clocks(self.a.changes, self.change)
        name, _, k = self.a.variant.partition(":")
        if name == "sensor":
            self.clocks(self.a.requests, self.request)
        else:
            n, k = self.a.pages, int(k)
            for i in range(k):
                self.env.process(self.robot(i * n // k, (i + 1) * n // k, name == "conditional"))
        self.env.run(until=self.a.time)
        self.integrate()
        used = resource.getrusage(resource.RUSAGE_SELF)
        n = self.a.pages
        return {
            "freshness_mean": 100 * (1 - self.area / (n * self.a.time)),
            "stale_end": self.stale,
            "bytes": self.bytes,
            "delay": {"mean": self.delay / max(1, self.delays), "count": self.delays},
            "max_in_progress": self.most,
            "real_changes": self.real,
            "detected": self.detected,
            "overwritten": self.overwritten,
            "events": self.events,
            "seconds": time.time() - began,
            "cpu_seconds": used.ru_utime + used.ru_stime,
        }


def arguments():
    p = argparse.ArgumentParser()
    p.add_argument("--pages", type=int, default=20000)
    p.add_argument("--time", type=float, default=864000)
    p.add_argument("--changes", type=float, default=5)
    p.add_argument("--requests", type=float, default=20)
    p.add_argument("--variant", default="plain:1")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--per-page", action="store_true")
    return p


if __name__ == "__main__":
    print(json.dumps(Model(arguments().parse_args()).run()))
