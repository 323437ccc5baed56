/** Which rule is meant: the one of the problem under the cursor, else one that is picked. */

import * as vscode from "vscode";
import type { Choices } from "./protocol";

export async function pickRule(choices: () => Promise<Choices | null>): Promise<string | undefined> {
  const here = underCursor();
  if (here.length === 1) return here[0];
  const items = choices().then((all) =>
    (all?.rules ?? [])
      .filter((rule) => here.length === 0 || here.includes(rule.name))
      .map((rule) => ({ label: rule.name, description: `${rule.code} · ${rule.severity}`, detail: rule.summary })),
  );
  const picked = await vscode.window.showQuickPick(items, {
    title: "Explain a rule",
    placeHolder: "Name, code or words",
    matchOnDescription: true,
    matchOnDetail: true,
  });
  return picked?.label;
}

function underCursor(): string[] {
  const editor = vscode.window.activeTextEditor;
  if (!editor) return [];
  const names = vscode.languages
    .getDiagnostics(editor.document.uri)
    .filter((d) => d.source === "spec-lsp" && d.range.contains(editor.selection.active))
    .map((d) => String(typeof d.code === "object" ? d.code.value : d.code));
  return [...new Set(names)];
}
