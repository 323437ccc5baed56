/** The words of the status bar. Pure. */

/** What the server assumes of a launch (`spec-lsp.assumed`). */
export interface Assumed {
  readonly text: string;
  readonly release: string;
  readonly releaseFrom: string;
  readonly hardware: string;
  readonly hardwareTitle: string;
  readonly hardwareFrom: string;
}

/** A family's title names its members, which is too long for a status bar. */
export function label(assumed: Assumed): string {
  const hardware = assumed.hardwareTitle.replace(/ \(.*\)$/, "");
  return hardware ? `SGLang ${assumed.release} · ${hardware}` : `SGLang ${assumed.release}`;
}

export function tooltip(assumed: Assumed, server: string): string {
  const lines = [
    `**SGLang ${assumed.release}**: ${source(assumed.releaseFrom, "the newest; nothing names a release")}`,
  ];
  if (assumed.hardwareTitle)
    lines.push(
      `**${assumed.hardwareTitle}**: ${source(assumed.hardwareFrom, "nothing names the GPU, so every one is considered")}`,
    );
  return [...lines, "Click to change them for the workspace.", `*${server}*`].join("\n\n");
}

function source(from: string, otherwise: string): string {
  if (from === "not named") return otherwise;
  return from === "directive" ? "from a `# spec-lsp:` comment in the file" : `from the ${from}`;
}

/** Why a choice changed nothing; empty when it did what it should. */
export function withoutEffect(chosen: { release?: string; hardware?: string }, assumed: Assumed | null): string {
  if (assumed === null) return "";
  const kept: string[] = [];
  if (chosen.release && chosen.release !== assumed.release)
    kept.push(`SGLang ${assumed.release} (${assumed.releaseFrom})`);
  if (chosen.hardware && chosen.hardware !== assumed.hardware)
    kept.push(`${assumed.hardwareTitle} (${assumed.hardwareFrom})`);
  if (kept.length === 0) return "";
  return `This launch is still checked for ${kept.join(" and ")}, which goes before the settings just written.`;
}
