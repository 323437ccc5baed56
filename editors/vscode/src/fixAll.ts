/** The command that applies every fix the settings allow, and says why when there is none. */

import * as vscode from "vscode";

export async function fixAll(documents: vscode.DocumentFilter[]): Promise<void> {
  const editor = vscode.window.activeTextEditor;
  if (!editor || vscode.languages.match(documents, editor.document) === 0) return;
  const { uri, lineCount } = editor.document;
  const everywhere = new vscode.Range(0, 0, lineCount, 0);
  const kind = "source.fixAll.spec-lsp";
  const actions = await vscode.commands.executeCommand<vscode.CodeAction[]>(
    "vscode.executeCodeActionProvider",
    uri,
    everywhere,
    kind,
  );
  const edit = actions.find((action) => action.kind?.value === kind)?.edit;
  if (edit) await vscode.workspace.applyEdit(edit);
  else await explain(uri);
}

async function explain(uri: vscode.Uri): Promise<void> {
  const problems = vscode.languages.getDiagnostics(uri).filter((d) => d.source === "spec-lsp");
  const unsafe = vscode.workspace.getConfiguration("spec-lsp", uri).get("unsafeFixes", false);
  if (problems.length === 0 || unsafe) {
    await vscode.window.showInformationMessage("There is nothing here that spec-lsp can fix.");
    return;
  }
  const message =
    "Every fix here changes what runs. Fix-all leaves such fixes alone unless spec-lsp.unsafeFixes is set.";
  if (await vscode.window.showInformationMessage(message, "Open Settings"))
    await vscode.commands.executeCommand("workbench.action.openSettings", "spec-lsp.unsafeFixes");
}
