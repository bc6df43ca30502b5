#!/usr/bin/env python3
"""Each check finds the fault that it is for, and nothing in a tree without it."""

import contextlib
import io
import os
import pathlib
import stat
import sys
import tempfile
import unittest

here = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(here), str(here.parent), str(here.parent.parent / "docs")]
import check  # noqa: E402
import nn_docs  # noqa: E402
import summarize  # noqa: E402


class Tree(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def faults(self, name, *arguments):
        return check.CHECKS[name](self.root, *arguments)

    def assertFault(self, name, *parts):
        faults = self.faults(name)
        self.assertEqual(len(faults), 1, faults)
        for part in parts:
            self.assertIn(part, faults[0])


class Layers(Tree):
    def setUp(self):
        super().setUp()
        for room in ("ABI", "Encoding", "Runtime", "Dialect", "Import", "Target"):
            self.write(f"include/ajour/{room}/{room}.h", "")

    def test_rooms_above_are_fine(self):
        self.write("lib/Import/A.cpp", '#include "ajour/Dialect/Dialect.h"\n#include "ajour/ABI/ABI.h"\n#include "B.h"\n')
        self.write("lib/Import/B.h", '#include "mlir/IR/Builders.h"\n')
        self.write("tests/T.cpp", '#include "ajour/Target/Target.h"\n#include "../lib/Import/B.h"\n')
        self.assertEqual(self.faults("layers"), [])

    def test_room_below(self):
        self.write("lib/Dialect/A.cpp", '\n#include "ajour/Import/Import.h"\n')
        self.assertFault("layers", "lib/Dialect/A.cpp:2", "does not stand above Dialect")

    def test_table_of_a_room_below(self):
        self.write("include/ajour/Dialect/Ops.td", 'include "ajour/Target/Target.h"\n')
        self.assertFault("layers", "include/ajour/Dialect/Ops.td:1", "Target")

    def test_private_header(self):
        self.write("lib/Dialect/P.h", "")
        self.write("lib/Import/A.cpp", '#include "../Dialect/P.h"\n')
        self.assertFault("layers", "is private to Dialect")

    def test_runtime_takes_only_the_contract(self):
        self.write("lib/Runtime/A.cpp", '#include "ajour/ABI/ABI.h"\n#include "ajour/Encoding/Encoding.h"\n')
        self.assertFault("layers", "lib/Runtime/A.cpp:2", "Runtime includes only ABI")

    def test_kernels_take_only_the_contract(self):
        self.write("kernels/cpu/Kernel.h", '#include "ajour/ABI/ABI.h"\n')
        self.write("kernels/cpu/gemm/a.c", '#include "../Kernel.h"\n#include "ajour/Runtime/Runtime.h"\n')
        self.assertFault("layers", "kernels/cpu/gemm/a.c:2")

    def test_tools_are_not_included(self):
        self.write("tools/lib/T.h", "")
        self.write("lib/Target/A.cpp", '#include "../../tools/lib/T.h"\n')
        self.assertFault("layers", "belongs to tools/")

    def test_generated_header(self):
        self.write("lib/Dialect/A.cpp", '#include "ajour/Target/Made.h.inc"\n')
        self.assertFault("layers", "Made.h.inc")

    def test_unknown_room(self):
        self.write("lib/Cellar/A.cpp", "")
        self.assertFault("layers", "'Cellar' has no place")


class RuntimeIsPlain(Tree):
    def test_words_in_comments_and_strings(self):
        self.write("lib/Runtime/A.cpp", '// never abort()\nconst char *s = "throw";\n/* dynamic_cast */ int throws;\n')
        self.write("lib/Target/A.cpp", "void f() { throw 1; }\n")
        self.assertEqual(self.faults("runtime"), [])

    def test_each_forbidden_thing(self):
        for code in ("void f() { throw 1; }", "auto *a = dynamic_cast<A *>(b);", "void f() { abort(); }",
                     "void f() { std::terminate(); }", "void f(int a) { assert(a); }", "void f() { try {} catch (...) {} }",
                     '#include "llvm/ADT/StringRef.h"', "#include <iostream>"):
            path = self.write("lib/Runtime/A.cpp", "\n" + code + "\n")
            faults = self.faults("runtime")
            self.assertTrue(faults and faults[0].startswith("lib/Runtime/A.cpp:2"), code)
            path.unlink()


class Readable(Tree):
    def test_size(self):
        self.write("lib/Target/Short.cpp", "\n" * 800)
        self.write("lib/Target/Long.cpp", "\n" * 801)
        self.assertFault("size", "lib/Target/Long.cpp", "801 lines")

    def test_paths_of_one_machine(self):
        self.write("docs/A.md", "see ../work/notes and a.b/home/x and https://example.org/home/\n")
        self.assertEqual(self.faults("paths"), [])
        for place in ("work/x", "home/somebody", "root/x"):
            self.write("docs/A.md", f"\nin /{place}\n")
            self.assertFault("paths", "docs/A.md:2", "is a place on one machine")

    def test_links(self):
        self.write("docs/A.md", "# Two words\n[a](B.md#part-1-the-start) [b](#two-words) [c](https://x.org)\n`lib/Target/A.cpp`\n"
                                "```\n[d](nowhere.md)\n```\n")
        self.write("docs/B.md", "## Part 1: the start\n")
        self.write("lib/Target/A.cpp", "")
        self.assertEqual(self.faults("links"), [])

    def test_broken_links(self):
        for text, told in (("[a](C.md)", "link to 'C.md'"), ("[a](#none)", "no heading"),
                           ("`lib/Target/None.cpp`", "names 'lib/Target/None.cpp'")):
            self.write("docs/A.md", "# Title\n" + text + "\n")
            self.assertFault("links", "docs/A.md:2", told)


class Options(Tree):
    def program(self, name, listing, options):
        path = self.write(name, f"#!/bin/sh\nif [ $# = 1 ]; then echo 'Subcommands:\n  {listing}  it runs'\n"
                                f"else echo '  -h,--help\n  {options}'; fi\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return str(path)

    def test_agree(self):
        program = self.program("ajour-run", "run", "--top K, --bgr")
        self.write("docs/CLI.md", "## `ajour-run run`\n`--top K`\n## Pictures\n`--bgr`\n")
        self.assertEqual(self.faults("options", [program]), [])

    def test_differences(self):
        program = self.program("ajour-run", "run", "--top K --new")
        self.write("docs/CLI.md", "# Commands\n## `ajour-run run`\n`--top` `--gone`\n## `ajour-run fly`\n")
        text = "\n".join(self.faults("options", [program]))
        self.assertIn("docs/CLI.md:2: `ajour-run run` has no --gone", text)
        self.assertIn("--new of `ajour-run run` is not described", text)
        self.assertIn("`ajour-run fly` is not a command", text)

    def test_command_without_section(self):
        program = self.program("ajour-run", "run", "")
        self.write("docs/CLI.md", "# Commands\n")
        self.assertEqual(len(self.faults("options", [program])), 1)


class Summary(Tree):
    CTEST = """<testsuite><testcase name="A.Right" classname="A.Right" status="run"><system-out/></testcase>
    <testcase name="A.Wrong" classname="A.Wrong" status="fail"><failure message=""/><system-out>1 is not 2</system-out></testcase>
    <testcase name="A.Absent" classname="A.Absent" status="notrun"><skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/>
    <system-out>[ RUN ] A.Absent\nA.cpp:3: Skipped\n{reason}\n\n[  SKIPPED ] A.Absent (0 ms)</system-out></testcase></testsuite>"""

    def summary(self, ci):
        out = io.StringIO()
        before = os.environ.pop("CI", None)
        if ci:
            os.environ["CI"] = "true"
        try:
            with contextlib.redirect_stdout(out):
                code = summarize.main([str(self.root)])
        finally:
            os.environ.pop("CI", None)
            if before is not None:
                os.environ["CI"] = before
        return code, out.getvalue()

    def test_counts(self):
        self.write("native.xml", self.CTEST.format(reason="absent: net.onnx"))
        self.write("checks.txt", "passed FuzzA\nfailed build\n")
        code, text = self.summary(ci=False)
        self.assertEqual(code, 1)
        self.assertEqual(text.splitlines()[-1], "2 passed, 2 failed, 1 skipped")
        self.assertIn("skipped 1: absent: net.onnx", text)
        self.assertIn("1 is not 2", text)

    def test_nothing_may_be_absent_in_ci(self):
        self.write("native.xml", self.CTEST.format(reason="absent: net.onnx"))
        self.assertEqual(self.summary(ci=True)[1].splitlines()[-1], "1 passed, 2 failed, 0 skipped")
        self.write("native.xml", self.CTEST.format(reason="this CPU lacks the level 'avx512'"))
        self.assertEqual(self.summary(ci=True)[1].splitlines()[-1], "1 passed, 1 failed, 1 skipped")

    def test_googletest_report(self):
        self.write("sanitize.xml", '<testsuites><testsuite name="S"><testcase name="T" classname="S" status="run" '
                   'result="completed"/><testcase name="U" classname="S" status="run" result="skipped">'
                   '<skipped message="f.cpp:3&#x0A;absent: x"/></testcase></testsuite></testsuites>')
        code, text = self.summary(ci=False)
        self.assertEqual((code, text), (0, "skipped 1: absent: x\n1 passed, 0 failed, 1 skipped\n"))

    def test_nothing_ran(self):
        self.assertEqual(self.summary(ci=False), (1, "0 passed, 0 failed, 0 skipped\n"))

    def test_broken_report(self):
        self.write("native.xml", "<testsuite><testcase")
        self.assertEqual(self.summary(ci=False)[1].splitlines()[-1], "0 passed, 1 failed, 0 skipped")


class NNDocs(Tree):
    RAW = "# 'nn' Dialect\n[TOC]\n## Operations\n### `nn.conv` (::ajour::nn::ConvOp)\nC1: rank. C2: groups.\n"

    def test_names_negative_tests(self):
        self.write("tests/Dialect/VerifierTest.cpp", 'Violation{"conv_C1", "", "C1:"},\nViolation{\n  "conv_C1_bias", ""},\n'
                   'Violation{"conv_transpose_C2", ""}')
        text = nn_docs.make_document(self.RAW, self.root)
        self.assertIn("| C1 | `conv_C1`, `conv_C1_bias` |", text)
        self.assertIn("| C2 | none |", text)
        self.assertNotIn("[TOC]", text)


if __name__ == "__main__":
    unittest.main()
