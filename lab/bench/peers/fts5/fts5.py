#!/usr/bin/env python3
"""Indexes DIR/pages.jsonl with SQLite FTS5 and asks DIR/queries.jsonl.

Prints CPU time a page, size beside the text, and p50/p99 of each kind of query:
the ten best by bm25 and the number of matches. The time of a query is the least
of five rounds.
"""
import json, os, resource, sqlite3, sys, time


def cpu():
    u = resource.getrusage(resource.RUSAGE_SELF)
    return u.ru_utime + u.ru_stime


def expression(q):
    def quoted(w):
        return '"' + w.strip('"*').replace('"', "") + '"' + ("*" if w.endswith("*") else "")
    if q.startswith('"'):
        return quoted(q)
    if " OR " in q:
        return " OR ".join(quoted(w) for w in q.split(" OR "))
    return " ".join(quoted(w) for w in q.split())


def main():
    d = sys.argv[1]
    path = os.path.join(d, "fts5.db")
    if os.path.exists(path):
        os.remove(path)
    pages = [json.loads(line) for line in open(os.path.join(d, "pages.jsonl"), encoding="utf-8")]
    text = sum(len(p["body"].encode()) for p in pages)
    db = sqlite3.connect(path)
    db.execute("pragma journal_mode=off")
    db.execute("create virtual table f using fts5(url unindexed, title, body)")
    began = cpu()
    for i in range(0, len(pages), 200):
        with db:
            db.executemany("insert into f values (?,?,?)", [(p["url"], p["title"], p["body"]) for p in pages[i:i + 200]])
    took = cpu() - began
    print(f"sqlite {sqlite3.sqlite_version}: {len(pages)} pages, {text / 1e6:.1f} MB of text: {took / len(pages) * 1e6:.0f} us of CPU a page, "
          f"{text / 1e6 / took:.1f} MB/s, index / text {os.path.getsize(path) / text:.2f}")
    kinds = {}
    for line in open(os.path.join(d, "queries.jsonl"), encoding="utf-8"):
        q = json.loads(line)
        kinds.setdefault(q["kind"], []).append(expression(q["query"]))
    for kind, queries in kinds.items():
        times = [float("inf")] * len(queries)
        for _ in range(5):
            for i, q in enumerate(queries):
                began = time.perf_counter()
                db.execute("select count(*) from f where f match ?", (q,)).fetchone()
                db.execute("select rowid from f where f match ? order by bm25(f, 0, 3, 1) limit 10", (q,)).fetchall()
                times[i] = min(times[i], time.perf_counter() - began)
        times.sort()
        print(f"{kind:15} p50 {times[len(times) // 2] * 1e6:9.1f} us  p99 {times[len(times) * 99 // 100] * 1e6:9.1f} us")


main()
