#!/usr/bin/env python3
"""Indexes DIR/pages.jsonl with Xapian (python3-xapian) and asks DIR/queries.jsonl.

Words with positions, no stems, stored text. Prints CPU time a page, size beside the
text, and p50/p99 of the CPU time of each kind of query, its ten best with the number
of matches; the least of five rounds.
"""
import itertools, json, os, resource, shutil, sys, time

import xapian


def cpu():
    u = resource.getrusage(resource.RUSAGE_SELF)
    return u.ru_utime + u.ru_stime


def main():
    d = sys.argv[1]
    path = os.path.join(d, "xapian.db")
    shutil.rmtree(path, ignore_errors=True)
    db = xapian.WritableDatabase(path, xapian.DB_CREATE)
    generator = xapian.TermGenerator()
    count, text, took = 0, 0, 0.0
    with open(os.path.join(d, "pages.jsonl"), encoding="utf-8") as lines:
        while rows := [json.loads(line) for line in itertools.islice(lines, 200)]:
            text += sum(len(p["body"].encode()) for p in rows)
            began = cpu()
            for p in rows:
                doc = xapian.Document()
                generator.set_document(doc)
                generator.index_text(p["title"], 3)
                generator.increase_termpos()
                generator.index_text(p["body"])
                doc.set_data(p["body"])
                db.add_document(doc)
            took += cpu() - began
            count += len(rows)
    began = cpu()
    db.commit()
    took += cpu() - began
    size = sum(os.path.getsize(os.path.join(path, f)) for f in os.listdir(path))
    print(f"xapian {xapian.version_string()}: {count} pages, {text / 1e6:.1f} MB of text: {took / count * 1e6:.0f} us of CPU a page, "
          f"{text / 1e6 / took:.1f} MB/s, index / text {size / text:.2f}")
    parser = xapian.QueryParser()
    parser.set_database(db)
    parser.set_default_op(xapian.Query.OP_AND)
    flags = xapian.QueryParser.FLAG_BOOLEAN | xapian.QueryParser.FLAG_PHRASE | xapian.QueryParser.FLAG_WILDCARD
    kinds = {}
    for line in open(os.path.join(d, "queries.jsonl"), encoding="utf-8"):
        q = json.loads(line)
        kinds.setdefault(q["kind"], []).append(q["query"])
    for kind, queries in kinds.items():
        times = [float("inf")] * len(queries)
        for _ in range(5):
            for i, q in enumerate(queries):
                began = time.thread_time()
                enquire = xapian.Enquire(db)
                enquire.set_query(parser.parse_query(q, flags))
                list(enquire.get_mset(0, 10, count))
                times[i] = min(times[i], time.thread_time() - began)
        times.sort()
        print(f"{kind:15} p50 {times[len(times) // 2] * 1e6:9.1f} us  p99 {times[len(times) * 99 // 100] * 1e6:9.1f} us", flush=True)


main()
