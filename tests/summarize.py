#!/usr/bin/env python3
"""Adds up the results of a test run: summarize.py DIRECTORY

DIRECTORY holds JUnit files (*.xml, of ctest and of GoogleTest) and checks.txt with lines "passed NAME" and "failed NAME". Prints
what failed and why tests were skipped, then "N passed, N failed, N skipped". The exit code is 1 if a test failed or none ran.

With CI=true in the environment a skipped test has failed, unless the reason is one that a machine may have.
"""

import collections
import os
import pathlib
import re
import sys
import xml.etree.ElementTree as ElementTree

# Reasons that stay skips everywhere: the processor is what it is, peers are not ours to install, and what takes minutes
# is asked for by AJOUR_ALL_PICTURES.
ALLOWED_SKIPS = re.compile(r"this CPU lacks|no ONNX Runtime|set AJOUR_ALL_PICTURES")

Case = collections.namedtuple("Case", "name verdict reason")


def skip_reason(output):
    """The text that a GoogleTest program printed for GTEST_SKIP."""
    found = re.search(r": Skipped\n(.*?)\n*(?:\n\[|$)", output, re.DOTALL)
    return " ".join(found.group(1).split()) if found else "no reason given"


def read_junit(path):
    """The cases of a JUnit file. `path.stem` stands before their names."""
    cases = []
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        suite = case.get("classname", "")
        name = case.get("name", "")
        if suite and suite != name and not name.startswith(suite):
            name = f"{suite}.{name}"
        name = f"{path.stem}: {name}"
        output = case.findtext("system-out", "")
        failures = case.findall("failure") + case.findall("error")
        skipped = case.find("skipped")
        if failures:
            text = output or "\n".join(f.get("message", "") for f in failures)
            cases.append(Case(name, "failed", text.strip()))
        elif skipped is not None:
            message = skipped.get("message", "")
            # ctest gives the pattern that it matched; the reason is in the output. GoogleTest gives the reason.
            told = skip_reason(output) if output else re.sub(r"^.*?:\d+\s*", "", message.strip(), flags=re.DOTALL)
            cases.append(Case(name, "skipped", told or message))
        elif case.get("status") in ("notrun", "disabled") or case.get("result") == "suppressed":
            cases.append(Case(name, "skipped", "disabled"))
        else:
            cases.append(Case(name, "passed", ""))
    return cases


def read_checks(path):
    cases = []
    for line in path.read_text().splitlines():
        verdict, _, name = line.partition(" ")
        if verdict not in ("passed", "failed"):
            raise ValueError(f"{path}: '{line}' is neither 'passed NAME' nor 'failed NAME'")
        cases.append(Case(name, verdict, ""))
    return cases


def read_results(directory):
    cases = []
    for path in sorted(directory.glob("*.xml")):
        try:
            cases += read_junit(path)
        except ElementTree.ParseError as error:
            cases.append(Case(path.name, "failed", f"not a report: {error}"))
    checks = directory / "checks.txt"
    return cases + (read_checks(checks) if checks.exists() else [])


def judge(case, strict):
    """In strict runs what must be there may not be absent."""
    if strict and case.verdict == "skipped" and not ALLOWED_SKIPS.search(case.reason):
        return Case(case.name, "failed", f"skipped, but nothing may be absent here: {case.reason}")
    return case


def main(arguments):
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    cases = [judge(case, os.environ.get("CI") == "true") for case in read_results(pathlib.Path(arguments[0]))]
    by_verdict = {v: [c for c in cases if c.verdict == v] for v in ("passed", "failed", "skipped")}
    for reason, count in sorted(collections.Counter(c.reason for c in by_verdict["skipped"]).items()):
        print(f"skipped {count}: {reason}")
    for case in by_verdict["failed"]:
        print(f"FAILED {case.name}")
        # ctest has shown the outputs of its failures above.
        for line in case.reason.splitlines()[-20:]:
            print(f"    {line}")
    print(", ".join(f"{len(by_verdict[v])} {v}" for v in ("passed", "failed", "skipped")))
    return 1 if by_verdict["failed"] or not by_verdict["passed"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
