#!/usr/bin/env python3
"""Checks of the repository as a house: who may include whom, and what readers rely on.

    check.py CHECK ROOT [PROGRAM...]

CHECK is one of: layers, runtime, size, paths, links, options. Prints each fault as "FILE:LINE: what is wrong" and exits with 1 if
there is one. PROGRAMs are what `options` asks for --help.
"""

import os
import pathlib
import re
import subprocess
import sys

# The rooms from the lowest: each may include itself and those in lines above it (docs/ARCHITECTURE.md).
ORDER = [
    ["ABI"],
    ["Kernels", "Encoding"],
    ["Runtime"],
    ["Language"],
    ["Support"],
    ["Dialect"],
    ["Reference"],
    ["Import"],
    ["Compress", "Conversion"],
    ["Target"],
    ["Pipeline"],
]
RANK = {room: rank for rank, rooms in enumerate(ORDER) for room in rooms}
# Rooms that take less than the order would let them.
ONLY = {"Kernels": {"ABI"}, "Encoding": {"ABI"}, "Runtime": {"ABI"}, "Language": {"ABI", "Runtime"}}
# Folders of ROOT that may include anything.
FREE = {"tools", "tests", "benchmarks", "cmake"}
SOURCES = {".c", ".cpp", ".h", ".hpp", ".inc", ".def", ".td", ".S", ".in"}
MAX_LINES = 800


def source_files(root):
    """Files that belong to the repository: tracked, or new and not ignored."""
    try:
        listed = subprocess.run(["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                                check=True, capture_output=True).stdout.decode().split("\0")
    except (OSError, subprocess.CalledProcessError):
        # An unpacked archive has no history; build folders are told by their names.
        listed = [str(p.relative_to(root)) for p in pathlib.Path(root).rglob("*")
                  if not p.relative_to(root).parts[0].startswith(("build", "."))]
    return sorted(pathlib.Path(name) for name in set(listed) if name and (pathlib.Path(root) / name).is_file())


def read_text(path):
    """A file's text, None if it is not one."""
    data = path.read_bytes()
    if b"\0" in data[:8192]:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def room_of(path):
    """The room of a file given relative to ROOT; None for what belongs to none."""
    parts = path.parts
    if parts[0] == "kernels":
        return "Kernels"
    if parts[0] == "lib" and len(parts) > 2:
        return parts[1]
    if parts[:2] == ("include", "ajour"):
        if len(parts) == 3:  # ajour.h and ajour.hpp are the runtime's interface.
            return "Runtime"
        return parts[2]
    return None


def strip_comments(text):
    """The text without comments and with empty strings; lines stay where they are."""
    def blank(match):
        piece = match.group(0)
        if piece.startswith("/"):
            return "\n" * piece.count("\n")
        return '""' if piece.startswith('"') else "' '"
    pattern = r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\''
    return re.sub(pattern, blank, text, flags=re.DOTALL)


def includes_of(text):
    """(line number, name, whether in quotes) for each include, also of TableGen."""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        match = re.match(r'\s*#?\s*include\s*(?:"([^"]+)"|<([^>]+)>)', line)
        if match:
            found.append((number, match.group(1) or match.group(2), match.group(1) is not None))
    return found


def resolve(root, path, name):
    """The repository's file that an include means, None if it is someone else's (or generated)."""
    for base in (path.parent, pathlib.Path("include"), pathlib.Path("kernels")):
        candidate = pathlib.Path(os.path.normpath(base / name))
        if candidate.parts[0] != ".." and (root / candidate).is_file():
            return candidate
    # Generated headers stand in the same folders of the build tree.
    return pathlib.Path("include") / name if name.startswith("ajour/") else None


def check_layers(root):
    faults = []
    for path in source_files(root):
        room = room_of(path)
        if path.suffix not in SOURCES or path.parts[0] in FREE or room is None:
            continue
        if room not in RANK:
            faults.append(f"{path}:1: room '{room}' has no place in the order of rooms")
            continue
        for line, name, quoted in includes_of(read_text(root / path) or ""):
            target = resolve(root, path, name) if quoted or name.startswith("ajour/") else None
            if target is None:
                continue
            other = room_of(target)
            where = f"{path}:{line}: '{name}'"
            if other == room:
                continue
            if target.parts[0] in FREE:
                faults.append(f"{where} belongs to {target.parts[0]}/, which may include {room} but not the reverse")
            elif other not in RANK:
                faults.append(f"{where} belongs to room '{other}', which has no place in the order of rooms")
            elif target.parts[0] != "include" and other != "Kernels":
                faults.append(f"{where} is private to {other}; only include/ajour/{other}/ is for others")
            elif RANK[other] >= RANK[room]:
                faults.append(f"{where} is of {other}, which does not stand above {room}")
            elif other not in ONLY.get(room, {other}):
                faults.append(f"{where} is of {other}; {room} includes only {', '.join(sorted(ONLY[room]))}")
    return faults


RUNTIME_FORBIDDEN = [
    (r"\bthrow\b", "throws"),
    (r"\btry\s*\{|\bcatch\s*\(", "catches"),
    (r"\bdynamic_cast\b|\btypeid\b", "needs RTTI"),
    (r"\b(?:std::)?(?:abort|exit|_exit|quick_exit|terminate)\s*\(", "ends the process"),
    (r"\bassert\s*\(", "aborts"),
    (r"#\s*include\s*[<\"](?:llvm|mlir|lld|clang)/", "includes LLVM"),
    (r"#\s*include\s*<(?:iostream|fstream|sstream|stdexcept|regex|locale|filesystem)>", "needs the C++ library at run time"),
]


def check_runtime(root):
    faults = []
    for path in source_files(root):
        room = room_of(path)
        if room not in ("Runtime", "Language", "ABI") or path.suffix not in SOURCES:
            continue
        text = read_text(root / path) or ""
        # Includes are strings; they are looked at with the strings in.
        for pattern, fault in RUNTIME_FORBIDDEN:
            searched = text if "include" in pattern else strip_comments(text)
            # The C++ wrapper is compiled into applications, which may throw.
            if path.name == "ajour.hpp" and "include" not in pattern:
                continue
            for match in re.finditer(pattern, searched):
                line = searched.count("\n", 0, match.start()) + 1
                faults.append(f"{path}:{line}: '{match.group(0).strip()}': the runtime {fault}")
    return faults


def check_size(root):
    faults = []
    for path in source_files(root):
        if path.suffix not in SOURCES | {".py", ".sh", ".cmake", ".md"} or path == pathlib.Path("docs/NN.md"):
            continue
        lines = len((read_text(root / path) or "").splitlines())
        if lines > MAX_LINES:
            faults.append(f"{path}:{lines}: has {lines} lines, more than {MAX_LINES}; split it")
    return faults


# Written in parts so that this file does not contain what it looks for.
PRIVATE = re.compile(r"(?<![\w./])(?:/(?:work|home|root|Users|tmp/bash)" + r"(?:/|\b)|[A-Z]:\\" + r"Users)")


def check_paths(root):
    faults = []
    for path in source_files(root):
        for number, line in enumerate((read_text(root / path) or "").splitlines(), 1):
            match = PRIVATE.search(line)
            if match:
                faults.append(f"{path}:{number}: '{match.group(0)}' is a place on one machine")
    return faults


def anchors_of(text):
    """The anchors of a document's headings, as code hosts make them."""
    headings = re.findall(r"^#+\s+(.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", h.lower()).strip().replace(" ", "-") for h in headings}


def without_code(text):
    return re.sub(r"^```.*?^```", lambda m: "\n" * m.group(0).count("\n"), text, flags=re.DOTALL | re.MULTILINE)


# A path in backquotes with one of these in front must exist: documents name files all the time.
NAMED_FILE = re.compile(r"`((?:lib|include|kernels|tools|tests|benchmarks|docs|cmake)/[\w./+-]*)`")


def check_links(root):
    faults = []
    for path in source_files(root):
        if path.suffix != ".md":
            continue
        text = without_code(read_text(root / path) or "")
        for number, line in enumerate(text.splitlines(), 1):
            for target in re.findall(r"\]\(([^)\s]+)\)", line):
                if re.match(r"[a-z]+:", target):
                    continue
                file, _, anchor = target.partition("#")
                place = root / path.parent / file if file else root / path
                if not place.exists():
                    faults.append(f"{path}:{number}: link to '{file}', which does not exist")
                elif anchor and place.suffix == ".md" and anchor not in anchors_of(read_text(place)):
                    faults.append(f"{path}:{number}: link to '{target}', but no heading is called that")
            for name in NAMED_FILE.findall(line):
                if not (root / name).exists() and not (root / path.parent / name).exists():
                    faults.append(f"{path}:{number}: names '{name}', which does not exist")
    return faults


def options_in(text):
    return set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", text))


def documented_commands(text):
    """Sections of docs/CLI.md, "## `ajour compile`": {(program, command): (line, options in its table and text)}."""
    sections = {}
    parts = re.split(r"^(## .*)$", text, flags=re.MULTILINE)
    line = parts[0].count("\n") + 1
    for heading, body in zip(parts[1::2], parts[2::2]):
        for program, command in re.findall(r"`(ajour(?:-run)?) ([a-z]+)`", heading):
            sections[program, command] = (line, options_in(body))
        line += heading.count("\n") + body.count("\n")
    return sections


def help_of(program, *command):
    return subprocess.run([program, *command, "--help"], capture_output=True, text=True, check=True, timeout=60).stdout


def check_options(root, programs):
    """Every command and option of docs/CLI.md is in --help, and the other way round."""
    faults = []
    document = pathlib.Path("docs/CLI.md")
    sections = documented_commands(read_text(root / document) or "")
    # Options that the page explains once for several commands.
    shared = options_in("".join(re.findall(r"^## Pictures$(.*?)(?=^## |\Z)", read_text(root / document) or "",
                                           re.DOTALL | re.MULTILINE)))
    for program in programs:
        name = pathlib.Path(program).name
        listing = help_of(program).partition("Subcommands:")[2]
        commands = set(re.findall(r"^  ([a-z]+)\s", listing, re.MULTILINE))
        for command in sorted(commands - {c for p, c in sections if p == name}):
            faults.append(f"{document}:1: no section for `{name} {command}`")
        for (owner, command), (line, documented) in sections.items():
            if owner != name:
                continue
            if command not in commands:
                faults.append(f"{document}:{line}: `{name} {command}` is not a command")
                continue
            offered = options_in(help_of(program, command)) - {"--help"}
            for option in sorted(documented - offered - {"--help", "--version"}):
                faults.append(f"{document}:{line}: `{name} {command}` has no {option}")
            for option in sorted(offered - documented - shared):
                faults.append(f"{document}:{line}: {option} of `{name} {command}` is not described")
    return faults


CHECKS = {"layers": check_layers, "runtime": check_runtime, "size": check_size, "paths": check_paths,
          "links": check_links, "options": check_options}


def main(arguments):
    if len(arguments) < 2 or arguments[0] not in CHECKS:
        print(__doc__, file=sys.stderr)
        return 2
    faults = CHECKS[arguments[0]](pathlib.Path(arguments[1]), *([arguments[2:]] if arguments[0] == "options" else []))
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
