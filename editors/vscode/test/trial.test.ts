import assert from "node:assert/strict";
import { test } from "node:test";
import { reason } from "../src/trial";

const SERVE = ["server", "--stdio"];
const PROGRAM = { source: "setting", command: "/opt/it", args: SERVE } as const;
const PYTHON = { source: "setting", command: "/env/bin/python", args: ["-m", "spec_lsp.cli", ...SERVE] } as const;

test("a Python without spec-lsp can have it installed", () => {
  const printed = "/env/bin/python: Error while finding module specification (No module named 'spec_lsp')";
  assert.deepEqual(reason(PYTHON, printed), {
    message: "The setting spec-lsp.path names the Python /env/bin/python, which does not have spec-lsp.",
    python: "/env/bin/python",
  });
});

test("of a program that fails the last line is told, not its stack", () => {
  const printed = 'Traceback (most recent call last):\n  File "x"\nspec-lsp: error: tree-sitter is not installed\n';
  const { message, python } = reason(PROGRAM, printed);
  assert.equal(
    message,
    "The setting spec-lsp.path names /opt/it, which does not start as a spec-lsp server: spec-lsp: error: tree-sitter is not installed",
  );
  assert.equal(python, undefined);
});

test("of another program that says nothing", () => {
  const { message } = reason({ ...PROGRAM, source: "path" }, "");
  assert.equal(message, "spec-lsp was found as /opt/it, which does not start as a spec-lsp server.");
});
