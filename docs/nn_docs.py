#!/usr/bin/env python3
"""Writes docs/NN.md, the reference of the nn dialect, from its TableGen files and its negative tests.

    nn_docs.py TBLGEN LLVM_INCLUDE ROOT           writes ROOT/docs/NN.md
    nn_docs.py TBLGEN LLVM_INCLUDE ROOT --check   exits with 1 if the file there is not what would be written

What mlir-tblgen prints is shortened: C++ types, traits and syntax lines that are the same for every operation go, element types get
short names. Each constraint is followed by the cases in tests/Dialect that break it; a case says which by its name, "conv_C2" or "conv_C2_bias".
"""

import pathlib
import re
import subprocess
import sys

# As mlir-tblgen spells the type constraints of NNDialect.td, longest first.
FLOAT = "32-bit float or 16-bit float or bfloat16 type or 64-bit float"
INT = " or ".join(f"{bits}-bit {sign} integer" for sign in ("signless", "unsigned") for bits in (8, 16, 32, 64))
TYPES = [
    (f"ranked tensor of {FLOAT} or {INT} or 1-bit signless integer values", "tensor"),
    (f"ranked tensor of {FLOAT} values", "float tensor"),
    (f"ranked tensor of {INT} values", "integer tensor"),
    ("ranked tensor of 1-bit signless integer values", "boolean tensor"),
]

HEADER = """<!-- Written by docs/nn_docs.py from include/ajour/Dialect/NN/*.td and tests/Dialect; run `cmake --build build --target ajour-docs`. -->

# The nn dialect
"""
NEGATIVE_TESTS = """Below each operation stand its constraints and the cases of `tests/Dialect/VerifierTest.cpp` that break them; run one
with `ctest --test-dir build -R conv_C2`.
"""


def find_negative_tests(root):
    """{(operation, constraint): [case, ...]} from the tables of violations in tests/Dialect."""
    found = {}
    for path in sorted((root / "tests" / "Dialect").glob("*.cpp")):
        for case, operation, constraint in re.findall(r'Violation\{\s*"((\w+?)_(C\d+)(?:_\w+)?)"', path.read_text()):
            found.setdefault((operation, constraint), []).append(case)
    return found


def shorten_attributes(section):
    """HTML tables of attributes as Markdown, without C++ types."""
    def table(match):
        rows = re.findall(r"<tr><td><code>(\w+)</code></td><td>.*?</td><td>(.*?)</td></tr>", match.group(0), re.DOTALL)
        lines = ["| Attribute | Kind |", "| --- | --- |"]
        return "\n".join(lines + [f"| `{name}` | {text.removesuffix(' attribute')} |" for name, text in rows])
    return re.sub(r"<table>.*?</table>", table, section, flags=re.DOTALL)


def shorten(section):
    """One operation's part of the text, easier to read."""
    for long, short in TYPES:
        section = section.replace(long, short)
    section = re.sub(r"^(?:Traits|Interfaces|Effects): .*\n", "", section, flags=re.MULTILINE)
    section = re.sub(r"^Syntax:\n\n```\noperation ::= `nn\.\w+` operands attr-dict `:` functional-type\(operands, results\)\n```\n",
                     "", section, flags=re.MULTILINE)
    section = re.sub(r"^#### (\w+):\n\n", "", shorten_attributes(section), flags=re.MULTILINE)
    section = re.sub(r"^\| :-+: \| -+ \|", "| --- | --- |", section, flags=re.MULTILINE)
    section = re.sub(r" \(::ajour::nn::\w+\)$", "", section, flags=re.MULTILINE)
    return re.sub(r"\n{3,}", "\n\n", section).strip() + "\n"


def constraint_order(name):
    return int(name[1:])


def constraints_of(section, sections):
    """The constraints that an operation's text numbers, or takes over from another operation."""
    names = set(re.findall(r"\bC\d+\b", section))
    for other in re.findall(r"(?:Constraints as in|As) nn\.(\w+)", section):
        names |= set(re.findall(r"\bC\d+\b", sections.get(other, "")))
    return sorted(names, key=constraint_order)


def constraint_table(operation, section, sections, tests):
    names = sorted(set(constraints_of(section, sections)) | {c for op, c in tests if op == operation}, key=constraint_order)
    if not names:
        return ""
    lines = ["", "| Constraint | Negative tests |", "| --- | --- |"]
    for name in names:
        cases = ", ".join(f"`{case}`" for case in tests.get((operation, name), []))
        lines.append(f"| {name} | {cases or 'none'} |")
    return "\n".join(lines) + "\n"


def make_document(raw, root):
    """The document from what mlir-tblgen printed."""
    tests = find_negative_tests(root)
    intro, _, rest = raw.partition("## Operations")
    operations, _, rest = rest.partition("\n## Attributes")
    attributes, _, enums = rest.partition("\n## Enums")
    intro = re.sub(r"^(?:<!--.*-->|# .*|\[TOC\])\n", "", intro, flags=re.MULTILINE).strip()
    sections = dict(re.findall(r"^### `nn\.(\w+)`(.*?)(?=^### |\Z)", operations, re.DOTALL | re.MULTILINE))
    text = HEADER + "\n" + intro + "\n\n" + NEGATIVE_TESTS + "\n## Operations\n"
    for name, section in sections.items():
        text += f"\n{shorten(f'### `nn.{name}`' + section)}{constraint_table(name, section, sections, tests)}"
    text += "\n## Attributes\n"
    # Attributes that wrap an enumeration say nothing that the enumeration does not.
    for part in re.split(r"^(?=### )", attributes, flags=re.MULTILINE)[1:]:
        if "an enum of type" not in part:
            mnemonic = re.search(r"#nn\.(\w+)", part).group(1)
            text += "\n" + re.sub(r"#### Parameters:.*", "", part, flags=re.DOTALL).strip() + "\n"
            text += constraint_table(mnemonic, part, {}, tests)
    text += "\n## Enumerations\n\n| Name | Meaning | Values |\n| --- | --- | --- |\n"
    for name, meaning, cases in re.findall(r"^### (\w+)\n\n_(.*?)_\n(.*?)(?=^### |\Z)", enums, re.DOTALL | re.MULTILINE):
        values = re.findall(r"^\| \w+ \| `\d+` \| (\w+) \|", cases, re.MULTILINE)
        text += f"| `{name}` | {meaning} | {', '.join(f'`{v}`' for v in values)} |\n"
    return text


def main(arguments):
    if len(arguments) not in (3, 4) or arguments[3:] not in ([], ["--check"]):
        print(__doc__, file=sys.stderr)
        return 2
    tblgen, llvm_include, root = arguments[0], arguments[1], pathlib.Path(arguments[2])
    raw = subprocess.run([tblgen, "--gen-dialect-doc", "-dialect=nn", "-I", root / "include", "-I", llvm_include,
                          root / "include/ajour/Dialect/NN/NNOps.td"], check=True, capture_output=True, text=True).stdout
    text, place = make_document(raw, root), root / "docs/NN.md"
    if not arguments[3:]:
        place.write_text(text)
        return 0
    if place.exists() and place.read_text() == text:
        return 0
    print("docs/NN.md is not what the dialect says now; run: cmake --build build --target ajour-docs, and commit it")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
