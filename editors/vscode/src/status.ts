/** The item in the status bar. */

import * as vscode from "vscode";
import { type Assumed, label, tooltip } from "./statusText";

export class Status implements vscode.Disposable {
  private readonly item = vscode.window.createStatusBarItem("spec-lsp.assumed", vscode.StatusBarAlignment.Right, 100);

  constructor() {
    this.item.name = "SGLang release and hardware";
  }

  show(assumed: Assumed, server: string): void {
    const text = new vscode.MarkdownString(tooltip(assumed, server));
    this.set(label(assumed), text, "spec-lsp.chooseReleaseAndHardware", false);
  }

  missing(): void {
    this.set(
      "$(warning) spec-lsp not found",
      "spec-lsp is not installed: click to look again",
      "spec-lsp.restart",
      true,
    );
  }

  failed(): void {
    this.set("$(warning) spec-lsp", "spec-lsp does not start: click for its log", "spec-lsp.showLog", true);
  }

  hide(): void {
    this.item.hide();
  }

  dispose(): void {
    this.item.dispose();
  }

  private set(text: string, about: string | vscode.MarkdownString, command: string, warns: boolean): void {
    this.item.text = text;
    this.item.accessibilityInformation = { label: text.replace("$(warning) ", "") };
    this.item.tooltip = about;
    this.item.command = command;
    this.item.backgroundColor = warns ? new vscode.ThemeColor("statusBarItem.warningBackground") : undefined;
    this.item.show();
  }
}
