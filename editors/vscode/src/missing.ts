/** What is said, once, when there is no server, and how it gets installed. */

import * as vscode from "vscode";
import type { Missing as NotFound } from "./discovery";
import type { Trouble } from "./trial";

const INSTALL = "Install…";
const CHOOSE = "Choose Program…";
const SETTINGS = "Open Settings";
const LOG = "Show Log";

export class Missing implements vscode.Disposable {
  private told = false;
  private last = (): Promise<void> => Promise.resolve();
  private subscription: vscode.Disposable | undefined;

  /** `retry` looks for the server again. */
  constructor(private readonly retry: () => unknown) {}

  tell({ named, distrusted }: NotFound, python: string | undefined): void {
    const why = distrusted ? "is a program of this folder, which you do not trust" : "is not there";
    this.say(
      named
        ? () => this.offer(`The setting spec-lsp.path names "${named}", which ${why}.`, [SETTINGS, CHOOSE])
        : () =>
            this.offer(
              "The program spec-lsp is not installed, so launches of SGLang are not checked.",
              [INSTALL, CHOOSE],
              python,
            ),
    );
  }

  tellFailure({ message, python }: Trouble): void {
    this.say(() => this.offer(message, python ? [INSTALL, CHOOSE] : [CHOOSE, LOG], python));
  }

  /** For somebody who asks for what only a server can give. */
  tellAgain(): void {
    if (this.told) void this.last();
  }

  /** There is a server now. Should it go, that is worth a message again. */
  isThere(): void {
    this.told = false;
    this.subscription?.dispose();
    this.subscription = undefined;
  }

  dispose(): void {
    this.subscription?.dispose();
  }

  private say(message: () => Promise<void>): void {
    this.last = message;
    if (!this.told) void message();
    this.told = true;
  }

  private async offer(message: string, buttons: string[], python?: string): Promise<void> {
    const chosen = await vscode.window.showWarningMessage(message, ...buttons);
    if (chosen === INSTALL) this.install(python);
    else if (chosen === CHOOSE) await chooseProgram();
    else if (chosen === SETTINGS)
      await vscode.commands.executeCommand("workbench.action.openSettings", "spec-lsp.path");
    else if (chosen === LOG) await vscode.commands.executeCommand("spec-lsp.showLog");
  }

  /** The command is typed, not run: whoever presses Enter has read it. */
  private install(python: string | undefined): void {
    const terminal = vscode.window.createTerminal("Install spec-lsp");
    terminal.show();
    const interpreter = python?.includes(" ") ? `"${python}"` : python;
    terminal.sendText(interpreter ? `${interpreter} -m pip install spec-lsp` : "pipx install spec-lsp", false);
    this.subscription?.dispose();
    this.subscription = vscode.Disposable.from(
      vscode.window.onDidEndTerminalShellExecution((event) => event.terminal === terminal && this.retry()),
      vscode.window.onDidCloseTerminal((closed) => closed === terminal && this.retry()),
    );
  }
}

async function chooseProgram(): Promise<void> {
  const [file] = (await vscode.window.showOpenDialog({ title: "spec-lsp, or a Python that has it" })) ?? [];
  if (file)
    await vscode.workspace.getConfiguration("spec-lsp").update("path", file.fsPath, vscode.ConfigurationTarget.Global);
}
