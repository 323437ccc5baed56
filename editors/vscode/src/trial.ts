/** Why a program that was started is no server: asked once, after it failed. */

import { execFile } from "node:child_process";
import type { Found } from "./discovery";

export interface Trouble {
  /** One sentence for the person. */
  readonly message: string;
  /** The interpreter that spec-lsp could be installed for, if that is what is missing. */
  readonly python?: string;
}

const PATIENCE_MS = 10_000;

/** Start the program once more, with nobody to talk to: a server of ours just ends, others say what they lack. */
export function trouble(server: Found): Promise<Trouble> {
  return new Promise((resolve) => {
    const options = { timeout: PATIENCE_MS, ...(server.cwd ? { cwd: server.cwd } : {}) };
    const trial = execFile(server.command, [...server.args], options, (_, __, stderr) =>
      resolve(reason(server, String(stderr))),
    );
    trial.stdin?.end();
  });
}

/** Pure: what is said of a program that printed this on its standard error. */
export function reason(server: Found, printed: string): Trouble {
  const named = server.source === "setting" ? "The setting spec-lsp.path names" : "spec-lsp was found as";
  const interpreter = server.args[0] === "-m";
  if (interpreter && /No module named '?spec_lsp/.test(printed))
    return { message: `${named} the Python ${server.command}, which does not have spec-lsp.`, python: server.command };
  const last = printed.trim().split("\n").at(-1)?.trim() ?? "";
  const why = last ? `: ${last.slice(0, MAX_SHOWN)}` : ".";
  return { message: `${named} ${server.command}, which does not start as a spec-lsp server${why}` };
}

const MAX_SHOWN = 200;
