/** What the server is told of the settings. Pure. */

/** Settings of this extension alone. */
const OURS = new Set(["path", "trace"]);

/**
 * The settings of one folder as the server takes them.
 *
 * `python` is the selected interpreter: its SGLang is asked for help where the settings name no other. In a folder that is not
 * trusted no SGLang is started, whatever the settings say.
 */
export function forServer(table: unknown, python: string | undefined, trusted: boolean): Record<string, unknown> {
  if (table === null || typeof table !== "object") return {};
  const told = Object.fromEntries(Object.entries(table).filter(([key]) => !OURS.has(key)));
  if (!trusted) delete told["verifyOnSave"];
  return python && !told["python"] ? { ...told, python } : told;
}
