/**
 * The door. Runs in every window that has a shell script, a YAML file or the like, so it does next to nothing: the client is
 * loaded, and the server started, when a document mentions SGLang or somebody runs a command.
 */

import * as vscode from "vscode";
import { mentions } from "./mention";
import { selector } from "./selector";
import type { Session } from "./session";

let session: Promise<Session> | undefined;

export function activate(context: vscode.ExtensionContext): void {
  const documents = selector(context.extension.packageJSON);
  const begin = (): Promise<Session> => {
    session ??= load(context, documents);
    return session;
  };

  const commands: Record<string, (session: Session, ...args: unknown[]) => unknown> = {
    "spec-lsp.showResolvedConfiguration": (s) => s.showResolved(),
    "spec-lsp.explainRule": (s, name) => s.explain(typeof name === "string" ? name : undefined),
    "spec-lsp.fixAll": (s) => s.fixAll(),
    "spec-lsp.chooseReleaseAndHardware": (s) => s.choose(),
    "spec-lsp.restart": (s) => s.restartByHand(),
    "spec-lsp.showLog": (s) => s.showLog(),
  };
  for (const [name, run] of Object.entries(commands))
    context.subscriptions.push(vscode.commands.registerCommand(name, async (...args) => run(await begin(), ...args)));

  const consider = (document: vscode.TextDocument): void => {
    if (session || vscode.languages.match(documents, document) === 0) return;
    if (mentions(document.languageId, document.getText())) void begin();
  };
  context.subscriptions.push(
    vscode.workspace.onDidOpenTextDocument(consider),
    vscode.workspace.onDidChangeTextDocument(({ document, contentChanges }) => {
      if (session || vscode.languages.match(documents, document) === 0) return;
      const touched = contentChanges.map(
        (c) => c.text + document.lineAt(document.validatePosition(c.range.start)).text,
      );
      if (mentions(document.languageId, touched.join("\n"))) void begin();
    }),
  );
  vscode.workspace.textDocuments.forEach(consider);
}

export async function deactivate(): Promise<void> {
  await (await session)?.stop();
}

async function load(context: vscode.ExtensionContext, documents: vscode.DocumentFilter[]): Promise<Session> {
  const { Session } = await import("./session");
  return Session.begin(context, documents);
}
