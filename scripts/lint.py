#!/usr/bin/env python3
"""Holds the budgets of CONTRIBUTING.md: prints what breaks them and the measures, exits 1 when any does.

Run by `make lint` from the repository root, with CC and FLAGS (for the headers) and BUILD in the environment.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

MAX_FILE_LINES = 1300
MAX_FUNCTION_LINES = 150  # longer only as a flat switch or table
FUNCTION_QUANTILES = ((0.5, 15), (0.9, 50), (0.95, 75))
MAX_PARAMETERS = 5
MAX_WIDTH = 100
TAB_WIDTH = 4
MAX_DEEP_SHARE = 0.02  # of code lines at brace depth >= 5
COMMENT_SHARES = {".c": (0.08, 0.22), ".h": (0.25, 0.60)}
MIN_ASSERTS_PER_KLOC = 5
FOLDERS = "base analyzer codegen sim profiler db viz cli include tests".split()


class Lint:
    def __init__(self):
        self.offences = []
        self.functions = []  # (lines, where, name)
        self.code_lines = 0
        self.deep_lines = []
        self.comment_lines = {".c": 0, ".h": 0}
        self.all_lines = {".c": 0, ".h": 0}
        self.asserts = 0

    def offend(self, where, what):
        self.offences.append(f"{where}: {what}")


def blank_out(text):
    """The text with comments, strings and character constants blanked; and the comment lines (by number)."""
    pattern = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
    comment_lines = set()

    def replace(match):
        found = match.group(0)
        if found.startswith("/"):
            first = text.count("\n", 0, match.start()) + 1
            comment_lines.update(range(first, first + found.count("\n") + 1))
            return re.sub(r"[^\n]", " ", found)
        return found[0] + "_" * (len(found) - 2) + found[-1]

    return pattern.sub(replace, text), comment_lines


def split_parameters(signature):
    """The parameters of the function that a signature declares."""
    open_at = re.search(r"\b[A-Za-z_]\w*\s*\(", re.sub(r"__attribute__\s*\(\(.*?\)\)", "", signature))
    if not open_at:
        return []
    depth, parts, part = 0, [], ""
    for c in signature[open_at.end() - 1:]:
        depth += (c in "([{") - (c in ")]}")
        if depth == 0:
            break
        if c == "," and depth == 1:
            parts.append(part)
            part = ""
        else:
            part += c
    parts.append(part.lstrip("("))
    return [p for p in (p.strip() for p in parts) if p and p != "void"]


def check_function(lint, path, lines, first, brace, last):
    signature = " ".join(lines[first:brace])
    name = re.search(r"([A-Za-z_]\w*)\s*\(", signature)
    name = name.group(1) if name else "?"
    length = last - first + 1
    where = f"{path}:{first + 1}"
    lint.functions.append((length, where, name))
    n_parameters = len(split_parameters(signature))
    if n_parameters > MAX_PARAMETERS:
        lint.offend(where, f"{name} has {n_parameters} parameters, at most {MAX_PARAMETERS}: use a struct")
    if length > MAX_FUNCTION_LINES:
        body = lines[brace:last + 1]
        n_cases = sum(bool(re.match(r"\s*(case\b|default:|\{)", line)) for line in body)
        if n_cases * 6 < length:
            lint.offend(where, f"{name} has {length} lines, at most {MAX_FUNCTION_LINES} unless a flat switch")


def check_functions(lint, path, lines):
    start = None
    for i, line in enumerate(lines):
        if line.rstrip() != "{" and start is None:
            continue
        if start is None:
            first = i
            while first > 0 and lines[first - 1].strip() and not re.match(r"[#}]|.*;\s*$", lines[first - 1]):
                first -= 1
            if ")" in "".join(lines[first:i]) and "=" not in "".join(lines[first:i]):
                start = (first, i)
        elif line.startswith("}"):
            check_function(lint, path, lines, start[0], start[1], i)
            start = None


def check_depth(lint, path, lines):
    depth = 0
    for i, line in enumerate(lines):
        code = line.strip()
        if code and not code.startswith("#"):
            lint.code_lines += 1
            if depth - code.startswith("}") >= 5:
                lint.deep_lines.append(f"{path}:{i + 1}")
        depth += line.count("{") - line.count("}")


def check_declarations(lint, path, text, blanked, comment_lines):
    """Each paragraph of function declarations has a comment."""
    blanked_lines, first = blanked.split("\n"), 0
    if re.search(r"#include \"[\w/]+\.def\"", text):
        return
    depth = 0
    for i, line in enumerate(text.split("\n") + [""]):
        if line.strip():
            continue
        paragraph = blanked_lines[first:i]
        joined = "\n".join(paragraph)
        declares = depth == 0 and re.search(r"^[A-Za-z_][\w \t*]*?[ *]\w+\([^;{}]*\)[^;{}]*;", joined, re.M)
        if declares and not any(n + 1 in comment_lines for n in range(first, i)):
            lint.offend(f"{path}:{first + 1}", "exported functions without a comment")
        depth += joined.count("{") - joined.count("}")
        first = i + 1


def check_file(lint, path):
    text = path.read_text(encoding="utf-8")
    lines = text.split("\n")
    blanked, comment_lines = blank_out(text)
    suffix = path.suffix
    if path.parts[0] != "tests":
        lint.all_lines[suffix] += sum(bool(line.strip()) for line in lines)
        lint.comment_lines[suffix] += len(comment_lines)
    if len(lines) - 1 > MAX_FILE_LINES:
        lint.offend(path, f"{len(lines) - 1} lines, at most {MAX_FILE_LINES}")
    for i, line in enumerate(lines):
        if len(line.expandtabs(TAB_WIDTH)) > MAX_WIDTH:
            lint.offend(f"{path}:{i + 1}", f"{len(line.expandtabs(TAB_WIDTH))} columns, at most {MAX_WIDTH}")
        if line != line.rstrip():
            lint.offend(f"{path}:{i + 1}", "blanks at the end of the line")
    blanked_lines = blanked.split("\n")
    check_depth(lint, path, blanked_lines)
    check_functions(lint, path, blanked_lines)
    if "tests" not in path.parts:
        lint.asserts += len(re.findall(r"\b(?:assert|BUG)\(", blanked))
    if suffix == ".h":
        check_declarations(lint, path, text, blanked, comment_lines)


def check_header_alone(lint, path, compiler, flags):
    command = [*compiler.split(), *flags, "-fsyntax-only", "-x", "c", str(path)]
    flags_alone = [f for f in command if f != "-Wpedantic"]
    result = subprocess.run(flags_alone, capture_output=True, text=True)
    output = result.stderr.replace("warning: #pragma once in main file", "")
    if result.returncode or "warning:" in output or "error:" in output:
        lint.offend(path, "does not compile alone: " + output.strip().split("\n")[0])


def check_globals(lint, build):
    """No object of the library or the program has writable data of its own."""
    writable = re.compile(r"\s(\.data|\.bss|\.tdata|\.tbss|\.data\.rel|\.data\.rel\.local|\*COM\*)\s+[0-9a-f]+\s+(\S+)$")
    if not shutil.which("objdump"):
        print("skipped: file-scope variables (no objdump)")
        return
    for obj in sorted(Path(build).rglob("*.o")):
        relative = obj.relative_to(build)
        if relative.parts[0] in ("tests", "asan", "fuzz") or not relative.with_suffix(".c").exists():
            continue
        table = subprocess.run(["objdump", "-t", str(obj)], capture_output=True, text=True).stdout
        for line in table.split("\n"):
            found = writable.search(line)
            if found and not found.group(2).startswith((".", "__odr_asan")):
                lint.offend(relative.with_suffix(".c"), f"{found.group(2)} is a variable that outlives a call")


def check_format(lint, files):
    if not shutil.which("clang-format"):
        print("skipped: formatting (no clang-format)")
        return
    command = ["clang-format", "--dry-run", "--ferror-limit=1", *map(str, files)]
    output = subprocess.run(command, capture_output=True, text=True).stderr
    for path in sorted(set(re.findall(r"^(\S+?):\d+:\d+: \w+: code should be clang-formatted", output, re.M))):
        lint.offend(path, "is not formatted: make format")


def quantile(values, share):
    return values[min(len(values) - 1, int(len(values) * share))]


def check_totals(lint):
    lengths = sorted(f[0] for f in lint.functions)
    if not lengths:
        lint.offend(".", "no functions found")
        return
    for share, limit in FUNCTION_QUANTILES:
        got = quantile(lengths, share)
        print(f"function lines, p{int(share * 100)}: {got} (at most {limit})")
        if got > limit:
            worst = ", ".join(f"{name} {n}" for n, _, name in sorted(lint.functions, reverse=True)[:5])
            lint.offend("all files", f"functions are too long at p{int(share * 100)}; longest: {worst}")
    deep = len(lint.deep_lines) / max(1, lint.code_lines)
    print(f"lines at brace depth >= 5: {100 * deep:.2f} % (at most {100 * MAX_DEEP_SHARE:.0f} %)")
    if deep > MAX_DEEP_SHARE:
        lint.offend("all files", "nested too deeply, for example " + ", ".join(lint.deep_lines[:5]))
    for suffix, (low, high) in COMMENT_SHARES.items():
        share = lint.comment_lines[suffix] / max(1, lint.all_lines[suffix])
        print(f"comment lines in {suffix}: {100 * share:.0f} % ({100 * low:.0f} to {100 * high:.0f} %)")
        if not low <= share <= high:
            lint.offend(f"all {suffix} files", f"comment share {100 * share:.0f} %")
    per_kloc = 1000 * lint.asserts / max(1, lint.all_lines[".c"])
    print(f"asserts per 1000 lines: {per_kloc:.0f} (at least {MIN_ASSERTS_PER_KLOC})")
    if per_kloc < MIN_ASSERTS_PER_KLOC:
        lint.offend("all files", "too few asserts of invariants")


def main():
    lint = Lint()
    files = sorted(p for folder in FOLDERS for p in Path(folder).rglob("*.[ch]"))
    for path in files:
        check_file(lint, path)
    flags = os.environ.get("FLAGS", "-std=c11 -I.").split()
    for path in files:
        if path.suffix == ".h":
            check_header_alone(lint, path, os.environ.get("CC", "cc"), flags)
    check_globals(lint, os.environ.get("BUILD", "build"))
    check_format(lint, files)
    check_totals(lint)
    print(f"{len(files)} files, {sum(lint.all_lines.values())} lines, {len(lint.functions)} functions")
    for offence in lint.offences:
        print(offence)
    print(f"{len(lint.offences)} offences")
    return 1 if lint.offences else 0


if __name__ == "__main__":
    sys.exit(main())
