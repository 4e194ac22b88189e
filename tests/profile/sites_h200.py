"""What the model predicts today for each site, beside what an H200 counted (tests/data/profile_sites_h200.csv).

usage: sites_h200.py PROGRAM ROOT. Exits 1 when a predicted site differs from the count; cp.async is left out, since the
per-instruction counter does not count it well.
"""
import csv
import json
import subprocess
import sys

program, root = sys.argv[1:]
FILES = {"conflicts": "tests/cli/conflicts.tl"}


def predicted(kernel, settings):
    path = "%s/%s" % (root, FILES.get(kernel, "examples/%s.tl" % kernel))
    command = [program, "analyze", path, "--json", "--no-db", *settings.split()]
    document = json.loads(subprocess.run(command, capture_output=True, text=True).stdout)
    return {(a["buffer"], a["instruction"]): (a["wavefronts"], a["ideal"]) for a in document["accesses"]}


known = {}
n_equal = n_wrong = 0
for row in csv.DictReader(open(root + "/tests/data/profile_sites_h200.csv")):
    if row["kernel"] == "seed_gemm_relu" or row["instruction"].startswith("cp.async"):
        continue
    key = row["kernel"], row["settings"]
    if key not in known:
        known[key] = predicted(*key)
    have = known[key].get((row["buffer"], row["instruction"]))
    want = int(row["wavefronts"]), int(row["ideal"])
    if have == want:
        n_equal += 1
    else:
        n_wrong += 1
        print(*key, row["buffer"], row["instruction"], "predicted", have, "counted", want)
print("%d sites as the card counted them, %d not" % (n_equal, n_wrong))
sys.exit(1 if n_wrong or not n_equal else 0)
