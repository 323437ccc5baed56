import assert from "node:assert/strict";
import { test } from "node:test";
import { discover, type Surroundings } from "../src/discovery";

const LINUX: Omit<Surroundings, "isFile"> = {
  setting: "",
  python: "/envs/a/bin/python",
  searchPath: "bin:/usr/local/bin:/usr/bin",
  home: "/home/me",
  folders: ["/work", "/other"],
  trusted: true,
  platform: "linux",
};
const WINDOWS: Omit<Surroundings, "isFile"> = {
  setting: "",
  python: "C:\\envs\\a\\python.exe",
  searchPath: "C:\\Windows;tools;C:\\Program Files\\Bin",
  home: "C:\\Users\\me",
  folders: ["D:\\work"],
  trusted: true,
  platform: "win32",
};
const SERVE = ["server", "--stdio"];

/** What is found where just these files are. */
function where(files: string[], around: Omit<Surroundings, "isFile">) {
  return discover({ ...around, isFile: (path) => files.includes(path) });
}

test("the selected environment goes before PATH", () => {
  const files = ["/usr/bin/spec-lsp", "/envs/a/bin/spec-lsp"];
  assert.deepEqual(where(files, LINUX), { source: "python", command: "/envs/a/bin/spec-lsp", args: SERVE });
});

test("PATH is looked through in its order", () => {
  const files = ["/usr/bin/spec-lsp", "/usr/local/bin/spec-lsp"];
  assert.deepEqual(where(files, LINUX), { source: "path", command: "/usr/local/bin/spec-lsp", args: SERVE });
});

test("a relative entry of PATH is passed over: the opened folder must not say what is run", () => {
  assert.deepEqual(where(["bin/spec-lsp", "/work/bin/spec-lsp"], LINUX), { named: "" });
});

test("without an environment only PATH is looked through", () => {
  const found = where(["/envs/a/bin/spec-lsp", "/usr/bin/spec-lsp"], { ...LINUX, python: undefined });
  assert.deepEqual(found, { source: "path", command: "/usr/bin/spec-lsp", args: SERVE });
});

for (const [written, command] of [
  ["/opt/spec-lsp", "/opt/spec-lsp"],
  ["~/bin/spec-lsp", "/home/me/bin/spec-lsp"],
  ["tools/spec-lsp", "/work/tools/spec-lsp"],
  // biome-ignore lint/suspicious/noTemplateCurlyInString: as settings write it
  ["${workspaceFolder}/tools/spec-lsp", "/work/tools/spec-lsp"],
] as const)
  test(`the setting ${written} goes before everything`, () => {
    const files = [command, "/envs/a/bin/spec-lsp", "/usr/bin/spec-lsp"];
    assert.deepEqual(where(files, { ...LINUX, setting: written }), { source: "setting", command, args: SERVE });
  });

for (const interpreter of ["/envs/b/bin/python", "/envs/b/bin/python3.12", "/envs/b/bin/pypy3"])
  test(`the setting may name the interpreter ${interpreter}`, () => {
    const args = ["-m", "spec_lsp.cli", ...SERVE];
    const found = where([interpreter], { ...LINUX, setting: interpreter });
    const cwd = interpreter.slice(0, interpreter.lastIndexOf("/"));
    assert.deepEqual(found, { source: "setting", command: interpreter, args, cwd });
  });

test("a program that is named but not there is not replaced by another", () => {
  assert.deepEqual(where(["/usr/bin/spec-lsp"], { ...LINUX, setting: "/gone" }), { named: "/gone" });
});

test("the setting may name a program on PATH, and never one of that name in the folder", () => {
  const files = ["/work/python3", "/usr/bin/python3", "/work/spec-lsp", "/usr/bin/spec-lsp"];
  for (const name of ["python3", "spec-lsp"]) {
    const found = where(files, { ...LINUX, setting: name });
    assert.equal("command" in found && found.command, `/usr/bin/${name}`);
    assert.deepEqual(where([`/work/${name}`], { ...LINUX, setting: name }), { named: name });
  }
});

for (const setting of [
  "tools/spec-lsp",
  "./spec-lsp",
  ".venv/bin/python",
  "/work/spec-lsp",
  "/other/.venv/bin/python",
  "/work/../work/spec-lsp",
  "/usr/../other/spec-lsp",
  // biome-ignore lint/suspicious/noTemplateCurlyInString: as settings write it
  "${workspaceFolder}/.venv/bin/python",
])
  test(`in folders that are not trusted, ${setting} is not run, whoever set it`, () => {
    const around = { ...LINUX, python: undefined, setting };
    const everything = { ...around, isFile: () => true };
    assert.deepEqual(discover({ ...everything, trusted: false }), { named: setting, distrusted: true });
    assert.ok("command" in discover(everything));
  });

test("in a folder that is not trusted, its own folders on PATH are passed over", () => {
  const around = { ...LINUX, python: undefined, searchPath: "/work/bin:/usr/bin", trusted: false };
  const files = ["/work/bin/spec-lsp", "/usr/bin/spec-lsp"];
  for (const setting of ["", "spec-lsp"]) {
    const found = where(files, { ...around, setting });
    assert.equal("command" in found && found.command, "/usr/bin/spec-lsp");
  }
  assert.ok("command" in where(["/workshop/spec-lsp"], { ...around, setting: "/workshop/spec-lsp" }));
});

test("on Windows programs end in .exe and stand in Scripts", () => {
  const command = "C:\\envs\\a\\Scripts\\spec-lsp.exe";
  assert.deepEqual(where([command], WINDOWS), { source: "python", command, args: SERVE });
  const beside = "C:\\envs\\a\\spec-lsp.exe";
  assert.deepEqual(where([beside], WINDOWS), { source: "python", command: beside, args: SERVE });
  const onPath = "C:\\Program Files\\Bin\\spec-lsp.exe";
  assert.deepEqual(where([onPath], WINDOWS), { source: "path", command: onPath, args: SERVE });
  const python = "C:\\envs\\b\\python.exe";
  const found = where([python], { ...WINDOWS, setting: python });
  const args = ["-m", "spec_lsp.cli", ...SERVE];
  assert.deepEqual(found, { source: "setting", command: python, args, cwd: "C:\\envs\\b" });
  for (const setting of ["d:\\WORK\\python.exe", "tools\\spec-lsp.exe", "D:/work/spec-lsp.exe"]) {
    const everything = { ...WINDOWS, setting, trusted: false, isFile: () => true };
    assert.deepEqual(discover(everything), { named: setting, distrusted: true });
  }
});

test("nothing anywhere is missing", () => {
  assert.deepEqual(where([], LINUX), { named: "" });
  assert.deepEqual(where([], { ...LINUX, searchPath: "", folders: [] }), { named: "" });
});
