/** Where the server is: named in the settings, in the selected Python environment, or on PATH. Pure: the disk is handed in. */

import * as path from "node:path";

export type Source = "setting" | "python" | "path";

export interface Found {
  readonly source: Source;
  readonly command: string;
  readonly args: readonly string[];
  /** Where to start it, if not in the opened folder: `python -m` imports what lies where it is started. */
  readonly cwd?: string;
}

/** `named` is what the setting names though nothing is there; empty when there is no such setting. */
export interface Missing {
  readonly named: string;
}

export interface Surroundings {
  /** `spec-lsp.path`: the program, or a Python interpreter that has spec-lsp; empty when not set. */
  readonly setting: string;
  /** The interpreter of the selected Python environment, if there is one that may be run. */
  readonly python: string | undefined;
  /** The variable PATH. */
  readonly searchPath: string;
  readonly home: string;
  /** The first workspace folder, which a relative setting starts from. */
  readonly folder: string | undefined;
  readonly platform: NodeJS.Platform;
  isFile(path: string): boolean;
}

const SERVE = ["server", "--stdio"];

export function discover(around: Surroundings): Found | Missing {
  if (around.setting) return named(around);
  return inPython(around) ?? onPath(around) ?? { named: "" };
}

export function isFound(result: Found | Missing): result is Found {
  return "command" in result;
}

/** A setting is a wish: when it cannot be had, nothing else is taken in its place. */
function named(around: Surroundings): Found | Missing {
  const command = expanded(around.setting, around);
  if (!around.isFile(command)) return { named: around.setting };
  const interpreter = /^(?:python|pypy)[\d.]*w?(?:\.exe)?$/i.test(flavour(around).basename(command));
  if (!interpreter) return { source: "setting", command, args: SERVE };
  const cwd = flavour(around).dirname(command);
  return { source: "setting", command, args: ["-m", "spec_lsp.cli", ...SERVE], cwd };
}

function inPython(around: Surroundings): Found | undefined {
  if (!around.python) return undefined;
  const paths = flavour(around);
  const bin = paths.dirname(around.python);
  const places = around.platform === "win32" ? [bin, paths.join(bin, "Scripts")] : [bin];
  return firstOf(places, "python", around);
}

/** Relative entries of PATH are passed over: they would let the opened folder say what is run. */
function onPath(around: Surroundings): Found | undefined {
  const paths = flavour(around);
  return firstOf(
    around.searchPath.split(paths.delimiter).filter((entry) => paths.isAbsolute(entry)),
    "path",
    around,
  );
}

function firstOf(folders: string[], source: Source, around: Surroundings): Found | undefined {
  const program = around.platform === "win32" ? "spec-lsp.exe" : "spec-lsp";
  const command = folders.map((folder) => flavour(around).join(folder, program)).find((file) => around.isFile(file));
  return command === undefined ? undefined : { source, command, args: SERVE };
}

function expanded(written: string, around: Surroundings): string {
  const paths = flavour(around);
  // biome-ignore lint/suspicious/noTemplateCurlyInString: this is how settings name the folder
  const whole = written.replaceAll("${workspaceFolder}", around.folder ?? "").replace(/^~(?=$|[\\/])/, around.home);
  return paths.isAbsolute(whole) || !around.folder ? whole : paths.join(around.folder, whole);
}

function flavour(around: Surroundings): path.PlatformPath {
  return around.platform === "win32" ? path.win32 : path.posix;
}
