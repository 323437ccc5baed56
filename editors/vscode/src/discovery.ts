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
  /** Whether it is the opened folder's own, which is not trusted. */
  readonly distrusted?: boolean;
}

export interface Surroundings {
  /** `spec-lsp.path`: the program, or a Python interpreter that has spec-lsp; empty when not set. */
  readonly setting: string;
  /** The interpreter of the selected Python environment, if there is one that may be run. */
  readonly python: string | undefined;
  /** The variable PATH. */
  readonly searchPath: string;
  readonly home: string;
  /** The workspace folders; a relative setting starts from the first. */
  readonly folders: readonly string[];
  /** Whether what these folders hold may be run. */
  readonly trusted: boolean;
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

/** A setting is a wish: when it cannot be had, nothing else is taken in its place. A name alone is one on PATH, as at a prompt. */
function named(around: Surroundings): Found | Missing {
  const alone = /^[^\\/~$]+$/.test(around.setting);
  const command = alone ? firstOf(searched(around), around.setting, around) : expanded(around.setting, around);
  if (command && !around.trusted && isInside(command, around)) return { named: around.setting, distrusted: true };
  if (!command || !around.isFile(command)) return { named: around.setting };
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
  return served("python", firstOf(places, "spec-lsp", around));
}

function onPath(around: Surroundings): Found | undefined {
  return served("path", firstOf(searched(around), "spec-lsp", around));
}

function served(source: Source, command: string | undefined): Found | undefined {
  return command === undefined ? undefined : { source, command, args: SERVE };
}

/** The folders of PATH. Relative ones are passed over, and the opened folder's own where it is not trusted: they would let it say what is run. */
function searched(around: Surroundings): string[] {
  const paths = flavour(around);
  const entries = around.searchPath.split(paths.delimiter).filter((entry) => paths.isAbsolute(entry));
  return entries.filter((entry) => around.trusted || !isInside(entry, around));
}

function firstOf(folders: string[], program: string, around: Surroundings): string | undefined {
  const file = around.platform === "win32" && !/\.exe$/i.test(program) ? `${program}.exe` : program;
  return folders.map((folder) => flavour(around).join(folder, file)).find((found) => around.isFile(found));
}

function isInside(file: string, around: Surroundings): boolean {
  const paths = flavour(around);
  return around.folders.some((folder) => {
    const way = paths.relative(folder, file);
    return !paths.isAbsolute(way) && way.split(paths.sep)[0] !== "..";
  });
}

function expanded(written: string, around: Surroundings): string {
  const paths = flavour(around);
  const folder = around.folders[0];
  // biome-ignore lint/suspicious/noTemplateCurlyInString: this is how settings name the folder
  const whole = written.replaceAll("${workspaceFolder}", folder ?? "").replace(/^~(?=$|[\\/])/, around.home);
  return paths.isAbsolute(whole) || !folder ? whole : paths.join(folder, whole);
}

function flavour(around: Surroundings): path.PlatformPath {
  return around.platform === "win32" ? path.win32 : path.posix;
}
