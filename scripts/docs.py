#!/usr/bin/env python3
"""Writes the reference pages that come from tables.

codes.md from base/diag.def, ops.md from analyzer/tile/ops.def, verbs.md from cli/verbs.def and cli/options.def.
"""

import re
import sys
from pathlib import Path

SECTIONS = {
    "E01": "Text and syntax", "E02": "Host evaluation and parameters", "E03": "Tile program and operations",
    "E04": "Layouts and the solver", "E05": "Pipeline", "E06": "Lowering and the warp program",
    "E07": "The machine", "E08": "The database", "E09": "The command line",
}


def split_rows(text, names):
    """(macro name, arguments) of each row; adjacent string literals are joined."""
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    token = re.compile(r'"(?:\\.|[^"\\])*"|[(),]|[^"(),]+')
    for match in re.finditer(rf"^\s*({'|'.join(names)})\(", text, re.M):
        args, arg, depth = [], "", 0
        for part in token.finditer(text, match.end() - 1):
            piece = part.group(0)
            if piece.startswith('"'):
                arg += bytes(piece[1:-1], "utf-8").decode("unicode_escape")
                continue
            depth += (piece == "(") - (piece == ")")
            if depth == 0 or (piece == "," and depth == 1):
                args.append(arg.strip())
                arg = ""
                if depth == 0:
                    break
            elif piece.strip() and not (piece == "(" and depth == 1):
                arg += piece.strip()
        yield match.group(1), args


def write_codes(folder):
    out = ["# Diagnostic codes", "", "`tilelayout explain CODE` prints the same.", ""]
    section = ""
    for _, (code, severity, title, explain) in split_rows(Path("base/diag.def").read_text(), ["DIAG"]):
        here = SECTIONS.get(code[:3], "Warnings")
        if here != section:
            out += [f"## {here}", ""]
            section = here
        out += [f"### {code}: {title} ({severity})", "", explain, ""]
    (folder / "codes.md").write_text("\n".join(out))


def write_ops(folder):
    out = ["# Operations of the tile language", ""]
    for macro, args in split_rows(Path("analyzer/tile/ops.def").read_text(), ["OP", "REGION", "EXPR", "ATTR"]):
        if macro == "OP":
            out += ["", f"## {args[1]}", "", args[2][:1].upper() + args[2][1:] + ".", "", f"    {args[3]}", ""]
        elif macro == "REGION":
            out.append(f"- `{args[1]}` ({args[2].lower()}): {args[3]}")
        else:
            kind = "scalar" if macro == "EXPR" else "fixed integer"
            out.append(f"- `{args[1]}` ({kind}): {args[2]}")
    (folder / "ops.md").write_text("\n".join(out) + "\n")


def write_verbs(folder):
    options = [args for _, args in split_rows(Path("cli/options.def").read_text(), ["OPTION"])]
    out = ["# The command line", ""]
    for _, (name, groups, _, _, arguments, doc, example) in split_rows(Path("cli/verbs.def").read_text(), ["VERB"]):
        mine = set(re.findall(r"GROUP_\w+", groups)) | {"GROUP_COMMON"}
        out += [f"## tilelayout {name} {arguments}".rstrip(), "", doc[:1].upper() + doc[1:] + ".", "", f"    {example}", ""]
        for option_groups, pattern, _, _, argument, text in options:
            if mine & set(re.findall(r"GROUP_\w+", option_groups)):
                value = "" if argument == "NULL" else " " + argument
                out.append(f"- `{pattern.replace(' ', ', ')}{value}`: {text}")
        out.append("")
    (folder / "verbs.md").write_text("\n".join(out))


def main():
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "build/docs")
    write_codes(folder)
    write_ops(folder)
    write_verbs(folder)
    print(f"{folder}/codes.md {folder}/ops.md {folder}/verbs.md")


if __name__ == "__main__":
    main()
