/** The line of the last active document that is the server's; tells when what is said of it may be something else. */

import * as vscode from "vscode";

export interface At {
  readonly uri: string;
  readonly line: number;
}

const PAUSE_MS = 80;

export class Cursor implements vscode.Disposable {
  private readonly moved = new vscode.EventEmitter<void>();
  private readonly subscriptions: vscode.Disposable[];
  private timer: NodeJS.Timeout | undefined;
  private document: vscode.TextDocument | undefined;
  private line = 0;
  private current: At | undefined;

  readonly onDidMove = this.moved.event;

  constructor(
    private readonly documents: vscode.DocumentFilter[],
    elsewhere: vscode.Event<void>,
  ) {
    this.subscriptions = [
      vscode.window.onDidChangeActiveTextEditor((editor) => this.follow(editor)),
      vscode.window.onDidChangeTextEditorSelection(({ textEditor }) => this.select(textEditor)),
      vscode.workspace.onDidChangeTextDocument(({ document }) => {
        if (document === this.document) this.tellSoon();
      }),
      vscode.workspace.onDidCloseTextDocument((document) => {
        if (document === this.document) this.follow(undefined, true);
      }),
      elsewhere(() => this.tellSoon()),
    ];
    this.follow(vscode.window.activeTextEditor);
  }

  /** Undefined when no such document is in front. The same object until something changes. */
  get at(): At | undefined {
    return this.current;
  }

  /** Another line, perhaps of another document, though the cursor is not there. */
  goTo(uri: string, line: number): void {
    this.document = vscode.workspace.textDocuments.find((d) => d.uri.toString() === uri) ?? this.document;
    this.line = line;
    this.tellSoon();
  }

  dispose(): void {
    clearTimeout(this.timer);
    vscode.Disposable.from(...this.subscriptions, this.moved).dispose();
  }

  /** While no text editor is active (a panel, the terminal) the last one still counts. */
  private follow(editor: vscode.TextEditor | undefined, closed = false): void {
    if (!editor && !closed && vscode.window.visibleTextEditors.some((e) => e.document === this.document)) return;
    const ours = editor && vscode.languages.match(this.documents, editor.document) > 0 ? editor : undefined;
    this.document = ours?.document;
    this.line = ours?.selection.active.line ?? 0;
    this.tellSoon();
  }

  private select(editor: vscode.TextEditor): void {
    if (editor.document !== this.document || editor.selection.active.line === this.line) return;
    this.line = editor.selection.active.line;
    this.tellSoon();
  }

  private tellSoon(): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      this.current = this.document && { uri: this.document.uri.toString(), line: this.line };
      this.moved.fire();
    }, PAUSE_MS);
  }
}
