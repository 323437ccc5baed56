/** What runs once somebody needs it: the server's client, the status bar and the documents that follow the editor. */

import * as os from "node:os";
import * as vscode from "vscode";
import { choose } from "./choose";
import { type Client, createClient } from "./client";
import { type At, Cursor } from "./cursor";
import { discover, type Found, isFound } from "./discovery";
import { isFile } from "./files";
import { fixAll } from "./fixAll";
import { Missing } from "./missing";
import { MarkdownPanel } from "./panel";
import { ASSUMED, CHOICES, type Choices, type Link, type Resolved, RULE_PAGE, SHOW_RESOLVED } from "./protocol";
import { Python } from "./python";
import { pickRule } from "./rules";
import { Status } from "./status";
import type { Assumed } from "./statusText";
import { trouble } from "./trial";

export class Session {
  private client: Client | undefined;
  private found: Found | undefined;
  private starting: Promise<void> = Promise.resolve();
  private readonly changed = new vscode.EventEmitter<void>();
  private readonly resolved = new MarkdownPanel("spec-lsp.resolved", "Resolved configuration");
  private readonly rule = new MarkdownPanel("spec-lsp.rule", "Rule");
  private links: readonly Link[] = [];
  private readonly status = new Status();
  private readonly missing: Missing;
  private readonly cursor: Cursor;
  private readonly log = vscode.window.createOutputChannel("spec-lsp", { log: true });

  private constructor(
    context: vscode.ExtensionContext,
    private readonly documents: vscode.DocumentFilter[],
    private readonly python: Python,
  ) {
    this.missing = new Missing(() => this.retry());
    this.cursor = new Cursor(documents, this.changed.event);
    context.subscriptions.push(
      this.log,
      this.changed,
      this.resolved,
      this.rule,
      this.status,
      this.missing,
      this.cursor,
      this.cursor.onDidMove(() => this.refresh()),
      this.resolved.onDidShow(() => this.refresh()),
      this.resolved.onDidFollow((link) => this.follow(this.links[link])),
      python,
      python.onDidChange(() => this.environmentChanged()),
      vscode.workspace.onDidGrantWorkspaceTrust(() => this.environmentChanged()),
      vscode.workspace.onDidChangeConfiguration((event) => {
        if (event.affectsConfiguration("spec-lsp.path")) void this.restart();
      }),
      vscode.workspace.onDidOpenTextDocument((document) => {
        if (vscode.languages.match(documents, document) > 0) void this.retry();
      }),
    );
  }

  static async begin(context: vscode.ExtensionContext, documents: vscode.DocumentFilter[]): Promise<Session> {
    const session = new Session(context, documents, await Python.find());
    await session.restart();
    return session;
  }

  // --- the server

  /** Stop the server if it runs, look for it anew, start it. */
  restart(): Promise<void> {
    this.starting = this.starting.then(() => this.startAnew());
    return this.starting;
  }

  async stop(): Promise<void> {
    const client = this.client;
    this.client = undefined;
    await client?.end();
  }

  private async startAnew(): Promise<void> {
    await this.stop();
    const result = this.discover();
    this.found = isFound(result) ? result : undefined;
    if (!isFound(result)) {
      this.log.warn(
        result.named ? `spec-lsp.path names ${result.named}, which cannot be run` : "spec-lsp was not found",
      );
      this.status.missing();
      this.missing.tell(result, this.python.interpreter);
      return;
    }
    this.log.info(`starting ${result.command} (${WHERE[result.source]})`);
    const client = createClient(result, this.documents, this.log, {
      python: () => this.python.interpreter,
      changed: () => this.changed.fire(),
      showResolved: (uri, line) => this.showResolved({ uri, line }),
    });
    if (!(await client.begin())) {
      const why = await trouble(result);
      this.log.error(why.message);
      this.status.failed();
      this.missing.tellFailure(why);
      return;
    }
    this.client = client;
    this.missing.isThere();
    this.changed.fire();
  }

  private discover(): ReturnType<typeof discover> {
    return discover({
      setting: vscode.workspace.getConfiguration("spec-lsp").get("path", ""),
      python: this.python.runnable,
      searchPath: process.env["PATH"] ?? "",
      home: os.homedir(),
      folders: (vscode.workspace.workspaceFolders ?? [])
        .filter((folder) => folder.uri.scheme === "file")
        .map((folder) => folder.uri.fsPath),
      trusted: vscode.workspace.isTrusted,
      platform: process.platform,
      isFile,
    });
  }

  /** Another environment or more trust: perhaps another server, and in any case other settings for it. */
  private environmentChanged(): void {
    const result = this.discover();
    if (!isFound(result) ? this.found !== undefined : result.command !== this.found?.command) void this.restart();
    else void this.client?.settingsChanged();
  }

  /** If there was no server: perhaps it was installed by now. */
  private async retry(): Promise<void> {
    await this.starting;
    if (!this.found && isFound(this.discover())) await this.restart();
  }

  private async ask<T>(command: string, ...args: unknown[]): Promise<T | null> {
    await this.starting;
    return this.client?.isRunning() ? this.client.execute<T>(command, args) : null;
  }

  // --- what follows the editor

  private async refresh(): Promise<void> {
    const at = this.cursor.at;
    if (!this.client?.isRunning()) return;
    if (!at) return this.status.hide();
    const assumed = await this.ask<Assumed>(ASSUMED, at.uri, at.line);
    if (at !== this.cursor.at || !this.client?.isRunning()) return;
    if (assumed) this.status.show(assumed, this.client.description);
    else this.status.hide();
    if (this.resolved.isOpen) {
      const view = await this.ask<Resolved>(SHOW_RESOLVED, at.uri, at.line, true);
      if (at !== this.cursor.at) return;
      this.links = view?.links ?? [];
      await this.resolved.update(view?.text ?? NOTHING);
    }
  }

  /** A link of the resolved configuration: a rule's page, or words in the editor that shows them. */
  private async follow(link: Link | undefined): Promise<void> {
    if (link?.rule) return this.explain(link.rule);
    if (!link?.uri || !link.range || !this.client) return;
    const uri = vscode.Uri.parse(link.uri);
    const shown = vscode.window.visibleTextEditors.find((editor) => editor.document.uri.toString() === uri.toString());
    await vscode.window.showTextDocument(uri, {
      viewColumn: shown?.viewColumn ?? vscode.ViewColumn.One,
      selection: this.client.protocol2CodeConverter.asRange(link.range),
    });
  }

  // --- commands

  /** Whether there is a server to answer; if not, the person who asked is told why. */
  private async answers(): Promise<boolean> {
    await this.starting;
    if (!this.client?.isRunning()) this.missing.tellAgain();
    return this.client?.isRunning() ?? false;
  }

  async showResolved(at?: At): Promise<void> {
    if (at) this.cursor.goTo(at.uri, at.line);
    if (await this.answers()) this.resolved.open();
  }

  async explain(named?: string): Promise<void> {
    if (!(await this.answers())) return;
    const name = named ?? (await pickRule(() => this.ask<Choices>(CHOICES)));
    const page = name && (await this.ask<string>(RULE_PAGE, name));
    if (!page) return;
    this.rule.open(name);
    await this.rule.update(page);
  }

  async fixAll(): Promise<void> {
    if (await this.answers()) await fixAll(this.documents);
  }

  async choose(): Promise<void> {
    if (!(await this.answers())) return;
    const choices = await this.ask<Choices>(CHOICES);
    const at = this.cursor.at;
    const assumed = (): Promise<Assumed | null> =>
      at ? this.ask<Assumed>(ASSUMED, at.uri, at.line) : Promise.resolve(null);
    if (choices) await choose(choices, assumed, this.changed.event);
  }

  async restartByHand(): Promise<void> {
    await this.restart();
    await this.answers();
  }

  showLog(): void {
    this.log.show();
  }
}

const WHERE = { setting: "spec-lsp.path", python: "the selected Python environment", path: "PATH" };

const NOTHING = "Nothing in this file launches SGLang.";
