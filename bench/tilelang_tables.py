#!/usr/bin/env python3
"""Tables of what TileLang's layouts cost and what this tool's save: parts of docs/savings.md and docs/waste.md.

usage: tilelang_tables.py given [--target NAME]        the kernels of tests/data/tilelang_layouts.tar.gz
       tilelang_tables.py corpus CHECKOUT DATA [--target NAME]
       tilelang_tables.py waste CHECKOUT DATA          launches whose measured wavefronts exceed the ideal

CHECKOUT is a checkout of TileLang's repository, DATA a folder with kernels.csv (the arguments with which its kernels
were built) and counters_h200.csv (what a card counted). The program is build/tilelayout, or $TL.
"""
import csv
import json
import os
import subprocess
import sys
import tarfile
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TL = os.environ.get("TL", os.path.join(ROOT, "build", "tilelayout"))
csv.field_size_limit(1 << 26)


def analyze(words, target):
    command = [TL, "analyze", *words, "--target", target, "--parity", "tilelang", "--json", "--no-db"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        return json.loads(done.stdout)
    except (subprocess.TimeoutExpired, json.JSONDecodeError):
        return None


def given_cases(folder, target):
    """(name, words) of each kernel and parameter set of the archive that was dumped for the target."""
    with tarfile.open(os.path.join(ROOT, "tests/data/tilelang_layouts.tar.gz")) as archive:
        archive.extractall(folder, filter="data")
    folder = os.path.join(folder, "tilelang_layouts")
    seen = {}
    for row in csv.DictReader(open(os.path.join(folder, "layouts.csv"))):
        if row["target"] == target:
            seen[row["case"]] = (row["file"], row["sets"])
    seen.update({"attention_d64_fullcol": ("attention.py", "policy=FullCol"),
                 "elementwise_192": ("elementwise.py", "M=960 N=960 block_M=5 block_N=192")})
    for name, (file, sets) in seen.items():
        words = [os.path.join(folder, "kernels", file)]
        for word in sets.split():
            words += ["--set", word]
        yield name, words


def plain(text):
    return not any('"%s"' % word in text for word in ("object", "symbolic"))


def words_of(row, checkout):
    """The command line's words for a row of kernels.csv."""
    words = [os.path.join(checkout, row["file"]), "--kernel", row["factory"].replace(".<locals>.", ".")]
    values = {}
    for outer in json.loads(row["outer"] or "[]"):
        values.update(outer.get("params") or {})
    values.update(json.loads(row["params"] or "{}"))
    for name, value in values.items():
        if isinstance(value, dict):
            continue
        value = tuple(value) if isinstance(value, list) else value
        words += ["--set", "%s=%s" % (name, value if isinstance(value, str) else repr(value))]
    for name, tensor in json.loads(row["tensors"] or "{}").items():
        words += ["--tensor", "%s=%s:%s" % (name, "x".join(map(str, tensor["shape"])), tensor["dtype"])]
    return words


def corpus_rows(data):
    """The first parameter set of each kernel of the examples and benchmarks."""
    seen = set()
    for row in csv.DictReader(open(os.path.join(data, "kernels.csv"))):
        key = (row["file"], row["factory"])
        if (row["file"].split("/")[0] in ("examples", "benchmark") and row["how"] != "prim_func" and key not in seen
                and plain(row["params"] + row["outer"] + row["tensors"])):
            seen.add(key)
            yield row


def number(value):
    return "-" if value is None else format(round(value), ",")


def shape_of(document):
    launch = document["launches"][0]
    return "%s, %d" % (" x ".join("?" if g is None else str(g) for g in launch["grid"]), launch["threads"])


def least(side):
    """Cycles of one side, the lower end where they are an interval."""
    return side and (side["cycles"] if side["cycles"] is not None else side.get("cycles_min"))


def saved_cycles(savings):
    """None where the sides do not compare: counts that depend on data, or a model that sees nothing of the code."""
    return savings["saved"]["cycles"] if savings["saved"] and least(savings["tilelang"]) else None


def savings_row(name, document):
    savings = document["savings"]
    theirs, own = savings["tilelang"], savings["own"]
    cells = [name, shape_of(document)]
    for key in ("shared_wavefronts", "shared_excess"):
        cells += [number(theirs[key]) if theirs else "rejected", number(own[key])]
    cells += [number(own["shared_ideal"]), number(least(theirs)), number(least(own))]
    cycles = saved_cycles(savings)
    cells.append("-" if cycles is None else "%s (%.1f %%)" % (number(cycles), 100 * cycles / least(theirs)))
    return "| " + " | ".join(cells) + " |"


SAVINGS_HEAD = """| kernel | grid, threads | wavefronts TileLang | ours | excess TileLang | ours | ideal ours | cycles TileLang | ours | saved |
|---|---|---|---|---|---|---|---|---|---|"""


def print_savings(cases, target):
    counts = {"better": 0, "equal": 0, "worse": 0, "not comparable": 0, "not compiled by one side": 0}
    print(SAVINGS_HEAD)
    for name, words in cases:
        document = analyze(words, target)
        savings = document.get("savings") if document else None
        if not savings or not savings["own"]:
            counts["not compiled by one side"] += 1
            continue
        cycles = saved_cycles(savings)
        kind = ("not compiled by one side" if not savings["tilelang"] else "not comparable" if cycles is None else
                "better" if cycles > 0.5 else "worse" if cycles < -0.5 else "equal")
        counts[kind] += 1
        print(savings_row(name, document), flush=True)
    print("\n" + ", ".join("%d %s" % (n, kind) for kind, n in counts.items()))


def measured_waste(data):
    """id -> [(launch, measured excess, measured wavefronts)] of the launches that waste any, worst first."""
    found = {}
    for row in csv.DictReader(open(os.path.join(data, "counters_h200.csv"))):
        wavefronts, ideal = int(row["wavefronts_shared"]), int(row["wavefronts_shared_ideal"])
        if wavefronts > ideal:
            found.setdefault(row["id"], []).append((int(row["launch"]), wavefronts - ideal, wavefronts))
    return sorted(found.items(), key=lambda item: -max(excess / total for _, excess, total in item[1]))


def print_waste(checkout, data):
    rows = {row["id"]: row for row in csv.DictReader(open(os.path.join(data, "kernels.csv")))}
    for name, launches in measured_waste(data):
        row = rows[name]
        measured = sum(excess for _, excess, _ in launches)
        total = sum(wavefronts for _, _, wavefronts in launches)
        print("\n### %s `%s`\n" % (row["file"], row["factory"].split(".")[-1]))
        document = None
        if plain(row["params"] + row["outer"] + row["tensors"]):
            document = analyze(words_of(row, checkout) + ["--assume-data", "int=0,bool=1"], "sm_90a")
        print("measured: %s excess of %s wavefronts (%.0f %%), %d launch%s" % (
            number(measured), number(total), 100 * measured / total, len(launches), "es" if len(launches) > 1 else ""))
        sites = [site for site in (document or {}).get("accesses", []) if site.get("excess")]
        if not sites:
            print("\nNo site is named: %s." % why_none(document))
            continue
        predicted = sum(site["excess"] for site in sites)
        if len(launches) == 1 and predicted != measured:
            print("\nPredicted are %s: the model's count differs here (docs/parity.md)." % number(predicted))
        print("\n| line | access | excess | cause | fix |\n|---|---|---|---|---|")
        for site in sorted(sites, key=lambda site: -site["excess"]):
            print("| %s:%d | %s %s | %s | %s | %s |" % (
                os.path.basename(row["file"]), site["line"], site["buffer"], site["instruction"],
                number(site["excess"]), site.get("cause", site.get("reason", "-")), site.get("fix", "-")))


def why_none(document):
    if not document:
        return "its arguments are no plain values"
    errors = [d["message"] for d in document["diagnostics"] if d["severity"] == "error"]
    return errors[0] if errors else "the model counts no excess"


def main(words):
    target = "sm_80"
    if "--target" in words:
        at = words.index("--target")
        target = words[at + 1]
        words = words[:at] + words[at + 2:]
    if words == ["given"]:
        with tempfile.TemporaryDirectory() as folder:
            print_savings(given_cases(folder, target), target)
    elif len(words) == 3 and words[0] == "corpus":
        cases = ((row["id"].rsplit(".", 1)[0], words_of(row, words[1])) for row in corpus_rows(words[2]))
        print_savings(cases, target)
    elif len(words) == 3 and words[0] == "waste":
        print_waste(words[1], words[2])
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
