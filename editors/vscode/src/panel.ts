/** Markdown beside the editor, rendered by VS Code's own renderer, which can be replaced while it is read. */

import { randomBytes } from "node:crypto";
import * as vscode from "vscode";

export class MarkdownPanel implements vscode.Disposable {
  private panel: vscode.WebviewPanel | undefined;
  private body = "";
  private readonly shown = new vscode.EventEmitter<void>();

  private readonly followed = new vscode.EventEmitter<number>();

  /** It is in front, newly or again: whoever knows its text should give it. */
  readonly onDidShow = this.shown.event;
  /** A link to `#n` was clicked. */
  readonly onDidFollow = this.followed.event;

  constructor(
    private readonly type: string,
    private readonly title: string,
  ) {}

  get isOpen(): boolean {
    return this.panel?.visible ?? false;
  }

  /** Show it beside the editor, which keeps the cursor. */
  open(title = this.title): void {
    if (this.panel) this.panel.reveal(undefined, true);
    else this.panel = this.create();
    this.panel.title = title;
    this.shown.fire();
  }

  /** What it shows from now on; a reader keeps their place. */
  async update(markdown: string): Promise<void> {
    const body = await rendered(markdown);
    if (body === this.body) return;
    this.body = body;
    await this.panel?.webview.postMessage(body);
  }

  dispose(): void {
    this.panel?.dispose();
    this.shown.dispose();
    this.followed.dispose();
  }

  private create(): vscode.WebviewPanel {
    const place = { viewColumn: vscode.ViewColumn.Beside, preserveFocus: true };
    const panel = vscode.window.createWebviewPanel(this.type, this.title, place, {
      enableScripts: true,
      enableFindWidget: true,
    });
    // Its page is loaded anew whenever it was hidden, and asks for what it should show then.
    panel.webview.onDidReceiveMessage((link: unknown) =>
      typeof link === "number" ? this.followed.fire(link) : panel.webview.postMessage(this.body),
    );
    panel.onDidChangeViewState(() => panel.visible && this.shown.fire());
    panel.onDidDispose(() => {
      this.panel = undefined;
      this.body = "";
    });
    panel.webview.html = page();
    return panel;
  }
}

/** Whatever stands in the text it will be given, nothing but our own script runs and nothing is loaded. */
function page(): string {
  const nonce = randomBytes(16).toString("base64");
  const policy = `default-src 'none'; style-src 'nonce-${nonce}'; script-src 'nonce-${nonce}'`;
  return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<style nonce="${nonce}">${STYLE}</style>
<script nonce="${nonce}">
const editor = acquireVsCodeApi();
addEventListener("message", (event) => { document.body.innerHTML = event.data; });
addEventListener("click", (event) => {
  const link = event.target.closest?.("a[href^='#']");
  if (!link) return;
  event.preventDefault();
  event.stopImmediatePropagation(); // else the window scrolls to a heading of that name
  editor.postMessage(Number(link.getAttribute("href").slice(1)));
}, true);
editor.postMessage("ready");
</script>
</head>
<body></body>
</html>`;
}

async function rendered(markdown: string): Promise<string> {
  try {
    return await vscode.commands.executeCommand<string>("markdown.api.render", markdown);
  } catch {
    return `<pre>${markdown.replace(/&/g, "&amp;").replace(/</g, "&lt;")}</pre>`; // the renderer is an extension that may be off
  }
}

const STYLE = `
body { line-height: 1.45; padding: 0 1.2em 1em; }
h1 { font-size: 1.4em; font-weight: 600; }
code { font-family: var(--vscode-editor-font-family); color: var(--vscode-textPreformat-foreground);
  background: var(--vscode-textPreformat-background); border-radius: 3px; padding: 0.05em 0.3em; overflow-wrap: anywhere; }
pre { background: var(--vscode-textCodeBlock-background); border-radius: 3px; padding: 0.7em; white-space: pre-wrap; }
pre code { background: none; color: inherit; padding: 0; }
table { border-collapse: collapse; table-layout: fixed; width: 100%; }
th { text-align: left; position: sticky; top: 0; background: var(--vscode-editor-background); }
th, td { vertical-align: top; padding: 0.3em 1em 0.3em 0; border-bottom: 1px solid var(--vscode-editorWidget-border); }
th:first-child, td:first-child { width: 32%; }
th:nth-child(2), td:nth-child(2) { width: 26%; }
td:last-child { color: var(--vscode-descriptionForeground); }
@media (max-width: 620px) {
  thead { display: none; }
  tr { display: grid; grid-template-columns: 1fr 1fr; padding: 0.35em 0; border-bottom: 1px solid var(--vscode-editorWidget-border); }
  td, td:first-child, td:nth-child(2) { width: auto; border: none; padding: 0 0.5em 0 0; }
  td:nth-child(3) { grid-column: 1 / -1; font-size: 0.92em; }
}
`;
