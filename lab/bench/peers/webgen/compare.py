#!/usr/bin/env python3
"""Links a second of processor time on one core: the models of `freshet lab web gen`
(benchmark Models, without the disk), networkx and igraph, in one run.

    apt install python3-networkx python3-igraph
    /usr/bin/python3 lab/bench/peers/webgen/compare.py [--short]

Run it in the folder of the repository. Webs of 10^7 pages, igraph's of 3x10^5,
networkx's of 3x10^4 (both slow down as graphs grow); --short: 3x10^5, 3x10^4, 3x10^3.
A peer stands beside the model that draws from the same law; where it has none
there is none.
"""

import argparse
import os
import re
import subprocess
import sys
import time

import igraph
import networkx as nx

parser = argparse.ArgumentParser()
parser.add_argument("--short", action="store_true")
args = parser.parse_args()
degree = 8
scale = 0.1 if args.short else 1
big, small = int(3e5 * scale), int(3e4 * scale)


def rate(make, links):
    """Million links a second, the best of three."""
    best = 0
    for _ in range(3):
        start = time.process_time()
        graph = make()
        best = max(best, links(graph) / (time.process_time() - start) / 1e6)
    return best


peers = {
    "er": (
        lambda: igraph.Graph.Erdos_Renyi(n=big, m=degree * big, directed=True),
        lambda: nx.fast_gnp_random_graph(small, degree / small, seed=1, directed=True),
    ),
    "ba": (
        lambda: igraph.Graph.Barabasi(big, degree, directed=True),
        lambda: nx.barabasi_albert_graph(small, degree, seed=1),
    ),
    # Bollobas, Borgs, Chayes and Riordan 2003: steps make a page or a link, as many links as 8 a page have.
    "alpha-beta": (None, lambda: nx.scale_free_graph(small, alpha=0.0625, beta=0.875, gamma=0.0625, seed=1)),
    # Krapivsky and Redner 2005: the links of a random page are copied.
    "copying": (None, lambda: nx.gnc_graph(small, seed=1)),
}
env = dict(os.environ)
if not args.short:
    env["FRESHET_LONG"] = "1"
bench = ["go", "test", "-run", "^$", "-bench", "Models", "-cpu", "1", "-benchtime", "1x", "./lab/webgraph/gen"]
out = subprocess.run(bench, check=True, stdout=subprocess.PIPE, text=True, env=env).stdout
ours = {m: float(r) for m, r in re.findall(r"^BenchmarkModels/(\S+)\s.*?([0-9.]+) Mlinks/cpu-s", out, re.M)}
if not ours:
    sys.exit("no figures in the output of the benchmark:\n" + out)

print("| model | million links / cpu-s | igraph | times | networkx | times |\n|---|---|---|---|---|---|")
for model, mine in sorted(ours.items(), key=lambda x: -x[1]):
    cells = [model, f"{mine:.3g}"]
    for i, links in enumerate((lambda g: g.ecount(), lambda g: g.number_of_edges())):
        make = peers.get(model, (None, None))[i]
        if make is None:
            cells += ["-", "-"]
        else:
            theirs = rate(make, links)
            cells += [f"{theirs:.2g}", f"{mine / theirs:.0f}"]
    print("| " + " | ".join(cells) + " |")
