#!/usr/bin/env python3
"""Compare `freshet lab web stats` with networkx and igraph: the same graph, one run,
one thread; figures must agree, seconds of CPU stand side by side (those of the
clock depend on what else the machine does).

    apt install python3-networkx python3-igraph
    /usr/bin/python3 lab/bench/peers/webstats/compare.py FRESHET [--nodes N] [--model M] [--distances] [--no-networkx]

Loading is not timed: a step of freshet is what a run with this step alone takes
beyond one without, the least of three. networkx 2.8's PageRank needs scipy; without it its version
in plain Python is taken.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time

import igraph
import networkx as nx

parser = argparse.ArgumentParser()
parser.add_argument("freshet")
parser.add_argument("--nodes", type=int, default=100_000)
parser.add_argument("--model", default="host-local")
parser.add_argument("--seed", default="1")
parser.add_argument("--distances", action="store_true", help="also distances, exactly: for up to some 10^4 pages")
parser.add_argument("--no-networkx", action="store_true")
args = parser.parse_args()


def freshet(*rest):
    return subprocess.run([args.freshet, "--quiet", *rest], check=True, stdout=subprocess.PIPE, text=True).stdout


def timed(do):
    start = time.process_time()
    value = do()
    return value, time.process_time() - start


def cpu(*rest):
    """Least CPU seconds of three runs."""
    least = float("inf")
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        freshet(*rest)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        least = min(least, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return least


work = tempfile.TemporaryDirectory()
raw, simple, edges = (os.path.join(work.name, f) for f in ("raw", "simple", "edges.tsv"))
freshet("web", "gen", "--model", args.model, "--nodes", str(args.nodes), "--seed", args.seed, "-o", raw)
with open(edges, "w") as f:
    f.write(freshet("web", "cat", raw))
# Repeats and loops are counted in different ways: leave them out.
freshet("web", "import", edges, "--simple", "--nodes", str(args.nodes), "-o", simple)
pairs = [tuple(map(int, line.split())) for line in freshet("web", "cat", simple).splitlines()]
n = args.nodes

os.environ["GOMAXPROCS"] = "1"
steps = ["laws", "goodness", "components", "clustering", "pagerank", "cores", "distances", "trawl", "hosts"]
left_out = {"trawl", "hosts"} | (set() if args.distances else {"distances"})


def stats(*do):
    skip = ",".join(s for s in steps if s not in do)
    return ["web", "stats", simple, "--threads", "1", "--exact", "--time", "1h"] + (["--skip", skip] if skip else [])


ours = json.loads(freshet("--json", *stats(*(s for s in steps if s not in left_out))))
opening = cpu("web", "cat", simple, "--nodes", "0:0")
counting = cpu(*stats())
seconds = {"degrees": counting - opening, "laws": cpu(*stats("laws", "goodness")) - counting}
for s in steps[2:]:
    if s not in left_out:
        seconds[s] = cpu(*stats(s)) - counting
rows = []  # step, figure, ours, theirs, tolerance
spent = {"igraph": {}, "networkx": {}}


def check(step, peer, figure, mine, theirs, tolerance):
    rows.append((step, peer, figure, mine, theirs, abs(mine - theirs) <= tolerance))


def spend(step, peer, do):
    value, t = timed(do)
    print(f"{peer} {step} {t:.2f} s", file=sys.stderr)
    spent[peer][step] = spent[peer].get(step, 0) + t
    return value


def with_igraph():
    p = "igraph"
    g = igraph.Graph(n=n, edges=pairs, directed=True)
    u = g.as_undirected()
    check("degrees", p, "links", ours["links"], g.ecount(), 0)
    into = spend("degrees", p, lambda: g.indegree())
    outof = spend("degrees", p, lambda: g.outdegree())
    check("degrees", p, "greatest in-degree", ours["max_in_degree"], max(into), 0)
    check("degrees", p, "greatest out-degree", ours["max_out_degree"], max(outof), 0)
    check("degrees", p, "reciprocity", ours["reciprocity"], spend("degrees", p, lambda: g.reciprocity()), 1e-12)
    for name, values, law in (("in", into, ours["in_law"]), ("out", outof, ours["out_law"])):
        if law is None:
            continue
        fit = spend("laws", p, lambda: igraph.power_law_fit([d for d in values if d > 0], method="discrete", p_precision=0.05))
        check("laws", p, name + "-exponent", law["exponent"], fit.alpha, 0.002)
        check("laws", p, name + " xmin", law["xmin"], fit.xmin, 0.03 * fit.xmin if fit.xmin > 64 else 0)
        check("laws", p, name + " KS distance", law["distance"], fit.D, 1e-3)
        check("laws", p, name + " p", law["p"], fit.p, 0.2)
    strong = spend("components", p, lambda: g.connected_components(mode="strong"))
    check("components", p, "strong components", ours["strong_components"], len(strong), 0)
    check("components", p, "largest strong share", ours["largest_scc"], max(strong.sizes()) / n, 1e-12)
    weak = spend("components", p, lambda: g.connected_components(mode="weak"))
    check("components", p, "weak components", ours["weak_components"], len(weak), 0)
    start = strong[strong.sizes().index(max(strong.sizes()))][0]
    down = set(spend("components", p, lambda: g.subcomponent(start, mode="out")))
    up = set(spend("components", p, lambda: g.subcomponent(start, mode="in")))
    check("components", p, "in", ours["bow_tie"]["in"], len(up - down) / n, 1e-12)
    check("components", p, "out", ours["bow_tie"]["out"], len(down - up) / n, 1e-12)
    local = spend("clustering", p, lambda: u.transitivity_avglocal_undirected(mode="zero"))
    check("clustering", p, "mean over pages", ours["clustering_detail"]["local"], local, 1e-9)
    whole = spend("clustering", p, lambda: u.transitivity_undirected())
    check("clustering", p, "over pairs", ours["clustering_detail"]["transitivity"], whole, 1e-9)
    ranks = spend("pagerank", p, lambda: g.pagerank())
    for top in ours["pagerank"]["top"][:3]:
        check("pagerank", p, "page %d" % top["page"], top["rank"], ranks[top["page"]], 1e-7)
    cores = spend("cores", p, lambda: u.coreness())
    check("cores", p, "greatest k", ours["k_core"]["max"], max(cores), 0)
    check("cores", p, "pages in it", ours["k_core"]["pages"], cores.count(max(cores)), 0)
    if args.distances:
        hist = spend("distances", p, lambda: g.path_length_hist())
        counts = [c for _, _, c in hist.bins()]
        check("distances", p, "joined pairs", ours["distances"]["reachable"], sum(counts) / n / (n - 1), 1e-12)
        mean = sum((t + 1) * c for t, c in enumerate(counts)) / sum(counts)
        check("distances", p, "mean", ours["distances"]["mean"], mean, 1e-9)
        check("distances", p, "longest", ours["distances"]["longest"], len(counts), 0)


def with_networkx():
    p = "networkx"
    g = nx.DiGraph()
    g.add_nodes_from(range(n))
    g.add_edges_from(pairs)
    u = g.to_undirected()
    into = spend("degrees", p, lambda: max(d for _, d in g.in_degree()))
    spend("degrees", p, lambda: max(d for _, d in g.out_degree()))
    check("degrees", p, "greatest in-degree", ours["max_in_degree"], into, 0)
    check("degrees", p, "reciprocity", ours["reciprocity"], spend("degrees", p, lambda: nx.overall_reciprocity(g)), 1e-12)
    strong = spend("components", p, lambda: list(nx.strongly_connected_components(g)))
    check("components", p, "strong components", ours["strong_components"], len(strong), 0)
    weak = spend("components", p, lambda: list(nx.weakly_connected_components(g)))
    check("components", p, "weak components", ours["weak_components"], len(weak), 0)
    core = max(strong, key=len)
    start = next(iter(core))
    down = spend("components", p, lambda: nx.descendants(g, start)) | core
    up = spend("components", p, lambda: nx.ancestors(g, start)) | core
    check("components", p, "in", ours["bow_tie"]["in"], len(up - down) / n, 1e-12)
    check("components", p, "out", ours["bow_tie"]["out"], len(down - up) / n, 1e-12)
    local = spend("clustering", p, lambda: nx.average_clustering(u))
    check("clustering", p, "mean over pages", ours["clustering_detail"]["local"], local, 1e-9)
    whole = spend("clustering", p, lambda: nx.transitivity(u))
    check("clustering", p, "over pairs", ours["clustering_detail"]["transitivity"], whole, 1e-9)
    try:
        import scipy  # noqa: F401

        pagerank = nx.pagerank
    except ImportError:
        from networkx.algorithms.link_analysis.pagerank_alg import _pagerank_python as pagerank
    # tol is per page and in the sum both: n * tol is compared with the sum of changes.
    ranks = spend("pagerank", p, lambda: pagerank(g, alpha=0.85, tol=1e-9 / n, max_iter=500))
    for top in ours["pagerank"]["top"][:3]:
        check("pagerank", p, "page %d" % top["page"], top["rank"], ranks[top["page"]], 1e-7)
    cores = spend("cores", p, lambda: nx.core_number(u))
    check("cores", p, "greatest k", ours["k_core"]["max"], max(cores.values()), 0)
    if args.distances:
        def search():
            return sum(sum(nx.single_source_shortest_path_length(g, s).values()) for s in g)

        pairs_joined = ours["distances"]["reachable"] * n * (n - 1)
        check("distances", p, "mean", ours["distances"]["mean"], spend("distances", p, search) / pairs_joined, 1e-9)


with_igraph()
if not args.no_networkx:
    with_networkx()

print(f"{args.model}, {n} pages, {len(pairs)} different links, seed {args.seed}\n")
bad = 0
print("| step | peer | figure | freshet | peer's | |\n|---|---|---|---|---|---|")
for step, peer, figure, mine, theirs, ok in rows:
    bad += not ok
    print(f"| {step} | {peer} | {figure} | {mine:.10g} | {theirs:.10g} | {'agrees' if ok else 'DIFFERS'} |")
print("\n| step | freshet s | igraph s | ratio | networkx s | ratio |\n|---|---|---|---|---|---|")
for step in ("degrees", "laws", "components", "clustering", "pagerank", "cores", "distances"):
    if step not in seconds:
        continue
    cells = [step, f"{seconds[step]:.3f}"]
    for peer in ("igraph", "networkx"):
        t = spent[peer].get(step)
        cells += ["-", "-"] if t is None else [f"{t:.2f}", f"{t / max(seconds[step], 1e-3):.1f}"]  # below 1 ms is noise
    print("| " + " | ".join(cells) + " |")
sys.exit(bad > 0)
