#!/usr/bin/env python3
"""Indexes DIR/pages.jsonl with SQLite FTS5 and asks DIR/queries.jsonl.

Prints CPU time a page, size beside the text, and p50/p99 of each kind of query:
the ten best by bm25 and the number of matches, in CPU time. The time of a query is
the least of five rounds.
"""
import itertools, json, os, resource, sqlite3, sys, time


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
    db = sqlite3.connect(path)
    db.execute("pragma journal_mode=off")
    db.execute("create virtual table f using fts5(url unindexed, title, body)")
    count, text, took = 0, 0, 0.0
    with open(os.path.join(d, "pages.jsonl"), encoding="utf-8") as lines:
        while rows := [json.loads(line) for line in itertools.islice(lines, 200)]:
            text += sum(len(p["body"].encode()) for p in rows)
            began = cpu()
            with db:
                db.executemany("insert into f values (?,?,?)", [(p["url"], p["title"], p["body"]) for p in rows])
            took += cpu() - began
            count += len(rows)
    print(f"sqlite {sqlite3.sqlite_version}: {count} pages, {text / 1e6:.1f} MB of text: {took / count * 1e6:.0f} us of CPU a page, "
          f"{text / 1e6 / took:.1f} MB/s, index / text {os.path.getsize(path) / text:.2f}")
    kinds = {}
    for line in open(os.path.join(d, "queries.jsonl"), encoding="utf-8"):
        q = json.loads(line)
        kinds.setdefault(q["kind"], []).append(expression(q["query"]))
    for kind, queries in kinds.items():
        times = [float("inf")] * len(queries)
        for _ in range(5):
            for i, q in enumerate(queries):
                began = time.thread_time()
                db.execute("select count(*) from f where f match ?", (q,)).fetchone()
                db.execute("select rowid from f where f match ? order by bm25(f, 0, 3, 1) limit 10", (q,)).fetchall()
                times[i] = min(times[i], time.thread_time() - began)
        times.sort()
        print(f"{kind:15} p50 {times[len(times) // 2] * 1e6:9.1f} us  p99 {times[len(times) * 99 // 100] * 1e6:9.1f} us")


main()
