import assert from "node:assert/strict";
import { test } from "node:test";
import manifest from "../package.json";
import { mentions } from "../src/mention";
import { selector } from "../src/selector";
import { forServer } from "../src/serverSettings";
import { type Assumed, label, tooltip, withoutEffect } from "../src/statusText";

const ASSUMED: Assumed = {
  text: "",
  release: "0.5.23",
  releaseFrom: "image tag",
  hardware: "",
  hardwareTitle: "any GPU",
  hardwareFrom: "not named",
};

test("the status bar has room for a family's name, not for its members", () => {
  assert.equal(label(ASSUMED), "SGLang 0.5.23 · any GPU");
  assert.equal(label({ ...ASSUMED, hardwareTitle: "Hopper (H100, H200)" }), "SGLang 0.5.23 · Hopper");
  assert.equal(label({ ...ASSUMED, hardwareTitle: "A100 80 GB" }), "SGLang 0.5.23 · A100 80 GB");
  assert.equal(label({ ...ASSUMED, hardware: "", hardwareTitle: "" }), "SGLang 0.5.23");
});

test("the tooltip says who named what", () => {
  const text = tooltip(ASSUMED, "spec-lsp 1.0");
  assert.match(text, /SGLang 0\.5\.23\*\*: from the image tag/);
  assert.match(text, /any GPU\*\*: nothing names the GPU, so every one is considered/);
  assert.match(text, /spec-lsp 1\.0/);
  assert.match(tooltip({ ...ASSUMED, releaseFrom: "directive" }, ""), /from a `# spec-lsp:` comment/);
});

test("a choice that changes nothing is explained, one that does is not", () => {
  assert.equal(withoutEffect({ release: "0.5.23", hardware: "hopper" }, { ...ASSUMED, hardware: "hopper" }), "");
  assert.equal(withoutEffect({ release: "", hardware: "" }, ASSUMED), "");
  assert.equal(withoutEffect({ release: "0.5.9" }, null), "");
  assert.match(withoutEffect({ release: "0.5.9" }, ASSUMED), /still checked for SGLang 0\.5\.23 \(image tag\), which/);
  assert.match(withoutEffect({ release: "0.5.9", hardware: "b200" }, ASSUMED), /0\.5\.23 .* and any GPU/);
});

for (const [language, text, concerned] of [
  ["shellscript", "python -m sglang.launch_server", true],
  ["shellscript", "echo nothing", false],
  ["markdown", "# About SGLang", true],
  ["python", "import torch", false],
  ["yaml", "speculative-algorithm: EAGLE3\n", true],
  ["yaml", "model_path: x\n", true],
  ["yaml", "a: 1\n'tp': 2\n", true],
  ["yaml", "# spec-lsp: config\nport: 1\n", true],
  ["yaml", "on: push\njobs: {}\n", false],
  ["yaml", "http: 1\ntpu: 2\n", false],
  ["shellscript", "speculative-algorithm: EAGLE3\n", false],
] as const)
  test(`${language} ${JSON.stringify(text)} ${concerned ? "starts" : "does not start"} the server`, () => {
    assert.equal(mentions(language, text), concerned);
  });

test("the server is told its settings and the selected interpreter, not what is ours", () => {
  const table = { path: "/x", trace: { server: "off" }, gpu: "h200", python: "" };
  assert.deepEqual(forServer(table, undefined, true), { gpu: "h200", python: "" });
  assert.deepEqual(forServer(table, "/env/bin/python", true), { gpu: "h200", python: "/env/bin/python" });
  assert.deepEqual(forServer({ python: "/mine" }, "/env/bin/python", true), { python: "/mine" });
  assert.deepEqual(forServer(null, undefined, true), {});
  assert.deepEqual(forServer({ verifyOnSave: true }, undefined, true), { verifyOnSave: true });
  assert.deepEqual(forServer({ verifyOnSave: true }, undefined, false), {});
});

test("documents are those that wake the extension", () => {
  const documents = selector(manifest);
  for (const language of ["shellscript", "yaml", "dockerfile", "markdown", "plaintext"])
    assert.ok(documents.some((d) => d.language === language && d.scheme === "file"));
  const plain = documents.filter((d) => d.language === "plaintext");
  assert.deepEqual(
    plain.map((d) => d.scheme),
    ["file"],
  );
  assert.ok(plain.every((d) => d.pattern));
});

test("every setting of ours is one of the manifest", () => {
  const names = Object.keys(manifest.contributes.configuration.properties);
  for (const ours of ["spec-lsp.path", "spec-lsp.trace.server"]) assert.ok(names.includes(ours));
});

test("every command of the manifest has another name than those of the server", () => {
  const names = manifest.contributes.commands.map((c) => c.command);
  for (const theirs of ["showResolved", "assumed", "choices", "rulePage"])
    assert.ok(!names.includes(`spec-lsp.${theirs}`));
});
