#!/usr/bin/env python3
"""Compares the layout algebra with NVIDIA's pycute and with tensor-layouts on random layouts.

    make check CASES=algebra_test            # builds build/tests/algebra_test
    python3 tests/outside/cute_compare.py --pycute FOLDER [--tensor-layouts FOLDER] [--cases N]

FOLDER is the folder that holds the package (`pycute` from CUTLASS's python/, or any site-packages).
Prints one line an operation; exits 1 when a result differs.

A result must be the same tree (strides of extents 1 aside). Where the other side refuses an
operation and this one does not, this result must be right by value; where this side refuses, the
other must refuse too, or be wrong by value, or use modes that overlap.
"""
import argparse
import random
import subprocess
import sys

OPERATIONS = ["coalesce", "compose", "complement", "right_inverse", "left_inverse", "logical_divide",
              "zipped_divide", "tiled_divide", "logical_product", "blocked_product", "raked_product"]


def text(shape, stride):
    def tree(x):
        return "(" + ",".join(map(tree, x)) + ")" if isinstance(x, tuple) else str(x)
    return tree(shape) + ":" + tree(stride)


def parse(line):
    shape, stride = line.split(":")
    def tree(t):
        return eval(t.replace(")", ",)").replace(",,", ","), {"__builtins__": {}})
    return tree(shape), tree(stride)


def leaves(shape, stride):
    if isinstance(shape, tuple):
        return [leaf for s, d in zip(shape, stride) for leaf in leaves(s, d)]
    return [(shape, stride)]


def value(layout, coordinate):
    flat = leaves(*layout)
    total = 0
    for s, d in flat[:-1]:
        total += coordinate % s * d
        coordinate //= s
    return total + coordinate * flat[-1][1]


def size(layout):
    n = 1
    for s, _ in leaves(*layout):
        n *= s
    return n


def normal(layout):
    """The tree with stride 0 at extents of 1."""
    shape, stride = layout
    if isinstance(shape, tuple):
        return tuple(normal((s, d)) for s, d in zip(shape, stride))
    return (shape, 0 if shape == 1 else stride)


def modes(layout):
    """Values of each top-level mode by itself: tiles may be nested or joined inside one."""
    return [[value((s, d), i) for i in range(size((s, d)))] for s, d in zip(*layout)]


class Cases:
    def __init__(self, seed):
        self.random = random.Random(seed)

    def layout(self, depth=2, compact=False):
        """A tree of at most three modes on two levels; half of them with strides of a compact one."""
        r = self.random
        shape = self.shape(depth)
        flat = [s for s, _ in leaves(shape, shape)]
        if compact or r.random() < 0.6:
            order = list(range(len(flat)))
            r.shuffle(order)
            strides, step = [0] * len(flat), 1 if compact else r.choice([1, 1, 1, 2, 3])
            for i in order:
                strides[i] = step
                step *= flat[i] * (1 if compact else r.choice([1, 1, 1, 1, 2]))
            if not compact and r.random() < 0.1:
                strides[r.randrange(len(flat))] = 0
        else:
            strides = [r.choice([0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32]) for _ in flat]
        it = iter(strides)
        def fill(s):
            return tuple(map(fill, s)) if isinstance(s, tuple) else next(it)
        return shape, fill(shape)

    def shape(self, depth):
        r = self.random
        if depth == 0 or r.random() < 0.3:
            return r.choice([1, 2, 2, 3, 4, 4, 5, 6, 8, 9, 12, 16])
        return tuple(self.shape(depth - 1) for _ in range(r.choice([1, 2, 2, 3])))

    def case(self):
        r = self.random
        op = r.choice(OPERATIONS)
        a = self.layout()
        if op in ("coalesce", "right_inverse", "left_inverse"):
            return op, [a], None
        if op == "complement":
            return op, [a], r.choice([1, 24, 64, 100, 256])
        if op in ("zipped_divide", "tiled_divide"):
            rank = len(a[0]) if isinstance(a[0], tuple) else 1
            return op, [a] + [self.layout(1) for _ in range(r.randint(1, rank))], None
        if op in ("blocked_product", "raked_product"):
            return op, [self.layout(1, compact=True), self.layout(1, compact=True)], None
        return op, [a, self.layout(r.choice([0, 1, 1, 2]))], None


class Pycute:
    name = "pycute"
    is_reference = True  # of what is defined
    operations = OPERATIONS[:9]

    def __init__(self, folder):
        sys.path.insert(0, folder)
        import pycute
        self.lib = pycute

    def layout(self, a):
        return self.lib.Layout(*a)

    def run(self, op, args, number):
        lib, a = self.lib, [self.layout(x) for x in args]
        if op == "complement":
            r = lib.complement(a[0], number)
        elif op in ("zipped_divide", "tiled_divide"):
            if not isinstance(args[0][0], tuple):
                raise ValueError("a leaf has no modes")
            r = getattr(lib, op)(a[0], tuple(a[1:]))
        else:
            r = getattr(lib, "composition" if op == "compose" else op)(*a)
        return r.shape, r.stride


class TensorLayouts(Pycute):
    name = "tensor-layouts"
    is_reference = False
    operations = OPERATIONS[:6] + OPERATIONS[8:]

    def __init__(self, folder):
        sys.path.insert(0, folder)
        import tensor_layouts
        self.lib = tensor_layouts

    def run(self, op, args, number):
        lib, a = self.lib, [self.layout(x) for x in args]
        r = lib.complement(a[0], number) if op == "complement" else getattr(lib, op)(*a)
        return r.shape, r.stride


def right_by_value(op, args, number, result):
    """Is the result what the operation's definition asks for?"""
    a = args[0]
    cells = range(size(result))
    if op == "coalesce":
        return size(result) == size(a) and all(value(result, i) == value(a, i) for i in cells)
    if op == "compose":
        return size(result) == size(args[1]) and all(
            value(result, i) == value(a, value(args[1], i)) for i in cells
            if value(args[1], i) < size(a))
    if op == "right_inverse":
        return all(value(a, value(result, i)) == i for i in cells)
    if op == "left_inverse":
        return all(value(result, value(a, i)) == i for i in range(size(a)))
    if op == "complement":
        mine = {value(a, i) for i in range(size(a))}
        rest = [value(result, i) for i in cells]
        return rest == sorted(set(rest)) and not mine & set(rest[1:]) and all(
            x + y in range(10**9) for x in mine for y in rest[:1])
    if op == "logical_divide":
        tile = (result[0][0], result[1][0])
        return all(value(tile, i) == value(a, value(args[1], i)) for i in range(size(args[1]))
                   if value(args[1], i) < size(a))
    return None


def injective(a):
    values = [value(a, i) for i in range(size(a))]
    return len(set(values)) == len(values)


def product(numbers):
    n = 1
    for x in numbers:
        n *= x
    return n


def covers(op, args, result):
    """Divide and product: every value of a, or every copy of it, comes once; tiles have their size."""
    if "product" in op and size(result) != size(args[0]) * size(args[1]):
        return False
    if "divide" in op:
        if size((result[0][0], result[1][0])) != product(map(size, args[1:])):
            return False
    elif op == "left_inverse" or op == "compose" or op == "complement":
        return True
    if size(result) > 1 << 16:
        return True
    if op in ("logical_product", "blocked_product", "raked_product"):
        return not (injective(args[0]) and injective(args[1])) or injective(result)
    want = sorted(value(args[0], i) for i in range(size(args[0])))
    got = sorted(value(result, i) for i in range(size(result)))
    return got == want


def interleaved(a):
    """A mode begins inside those below it: CuTe's complement asserts."""
    current = 1
    for stride, extent in sorted((d, s) for s, d in leaves(*a)):
        if stride == 0 or extent == 1:
            continue
        if stride < current:
            return True
        current = stride * extent
    return False


def verdict(op, args, number, ours, theirs):
    if ours is not None and theirs is not None:
        if normal(ours) == normal(theirs):
            return "same"
        if op in ("zipped_divide", "tiled_divide"):
            return "differs"
        if op in ("blocked_product", "raked_product"):
            return "same modes" if modes(ours) == modes(theirs) else "differs"
        right, wrong = right_by_value(op, args, number, ours), right_by_value(op, args, number, theirs)
        if right and wrong and op in ("left_inverse", "right_inverse"):
            return "both right" if op[0] == "l" or size(ours) >= size(theirs) else "differs"
        return "they are wrong" if right and wrong is False else "differs"
    if ours is None and theirs is None:
        return "both refuse"
    if ours is not None:
        right = right_by_value(op, args, number, ours)
        return "only they refuse" if right is None or right else "differs"
    wrong = right_by_value(op, args, number, theirs) is False or not covers(op, args, theirs)
    wrong = wrong or (op != "compose" and any(map(interleaved, args)))
    wrong = wrong or (op != "compose" and not all(map(injective, args)))
    if op in ("compose", "logical_divide", "zipped_divide", "tiled_divide", "logical_product",
              "blocked_product", "raked_product", "complement", "left_inverse"):
        return "only we refuse" if wrong else "we refuse too much"
    return "differs"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--program", default="build/tests/algebra_test")
    parser.add_argument("--pycute")
    parser.add_argument("--tensor-layouts")
    parser.add_argument("--cases", type=int, default=100000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    others = []
    if options.pycute:
        others.append(Pycute(options.pycute))
    if options.tensor_layouts:
        others.append(TensorLayouts(options.tensor_layouts))
    if not others:
        parser.error("give --pycute or --tensor-layouts")
    cases = Cases(options.seed)
    drawn = [cases.case() for _ in range(options.cases)]
    drawn = [case for case in drawn
             if all(s <= 1 << 30 and d <= 1 << 30 for a in case[1] for s, d in leaves(*a))
             and all(size(a) <= 1 << 14 for a in case[1])]
    lines = [" ".join([op] + [text(*a) for a in args] + ([str(n)] if n else []))
             for op, args, n in drawn]
    done = subprocess.run([options.program, "--lines"], input="\n".join(lines) + "\n", text=True,
                          capture_output=True, check=True)
    results = done.stdout.splitlines()
    assert len(results) == len(lines)
    bad = 0
    for other in others:
        counts = {}
        shown = 0
        for (op, args, number), line, result in zip(drawn, lines, results):
            if op not in other.operations:
                continue
            ours = None if result == "undefined" else parse(result)
            try:
                theirs = other.run(op, args, number)
                if any(extent == 0 for extent, _ in leaves(*theirs)):
                    theirs = None  # modes that overlap: an assertion in CuTe itself
            except Exception:
                theirs = None
            word = verdict(op, args, number, ours, theirs)
            if word == "we refuse too much" and not other.is_reference:
                word = "they go further"
            row = counts.setdefault(op, {})
            row[word] = row.get(word, 0) + 1
            if word in ("differs", "we refuse too much"):
                bad += 1
                if shown < 10:
                    shown += 1
                    print(f"{word}: {line}\n  ours {result}\n  {other.name} {theirs}")
        for op in OPERATIONS:
            if op in counts:
                print(f"{other.name} {op}: " +
                      ", ".join(f"{n} {word}" for word, n in sorted(counts[op].items())))
        print(f"{other.name}: {sum(sum(c.values()) for c in counts.values())} cases")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
