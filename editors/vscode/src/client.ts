/** The language client: what is told to the server beyond the protocol, and what is made of its answers. */

import * as vscode from "vscode";
import {
  type ClientCapabilities,
  CloseAction,
  DidChangeConfigurationNotification,
  ErrorAction,
  ExecuteCommandRequest,
  LanguageClient,
  type LanguageClientOptions,
  type StaticFeature,
  vsdiag,
} from "vscode-languageclient/node";
import type { Found } from "./discovery";
import { CHANGED, SHOW_RESOLVED } from "./protocol";
import { forServer } from "./serverSettings";

export interface Hooks {
  /** The selected interpreter. */
  python(): string | undefined;
  /** The server's answers may be others now. */
  changed(): void;
  /** A lens was clicked. */
  showResolved(uri: string, line: number): unknown;
}

export class Client extends LanguageClient {
  private begun = false;

  get hasBegun(): boolean {
    return this.begun;
  }

  /** Start the server; false when it is none. What goes wrong until then is for who asked to tell, once. */
  async begin(): Promise<boolean> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error("no answer")), PATIENCE_MS);
    });
    try {
      await Promise.race([this.start(), late]);
      this.begun = true;
    } catch (problem) {
      this.outputChannel.appendLine(
        `The server did not start: ${problem instanceof Error ? problem.message : problem}`,
      );
      await this.dispose().catch(() => undefined); // it may be half started
    } finally {
      clearTimeout(timer);
    }
    return this.begun;
  }

  /** Stop the server. What is on its way to it, such as changed settings, is nobody's loss. */
  async end(): Promise<void> {
    this.begun = false;
    if (this.isRunning()) await this.stop();
    await this.dispose();
  }

  override error(message: string, data?: unknown, showNotification?: boolean | "force"): void {
    if (this.begun) super.error(message, data, showNotification);
  }

  /** The server's name and version. */
  get description(): string {
    const server = this.initializeResult?.serverInfo;
    return server ? `${server.name} ${server.version ?? ""}`.trim() : "spec-lsp";
  }

  /** Run a command of the server; null when it cannot answer. */
  async execute<T>(command: string, args: unknown[]): Promise<T | null> {
    try {
      return await this.sendRequest(ExecuteCommandRequest.type, { command, arguments: args });
    } catch (problem) {
      if (this.isRunning()) this.warn(`${command}: ${problem}`, undefined, false);
      return null;
    }
  }

  /** Let the server ask for the settings again. */
  settingsChanged(): Promise<void> {
    return this.sendNotification(DidChangeConfigurationNotification.type, { settings: null });
  }
}

const PATIENCE_MS = 30_000;

export function createClient(
  server: Found,
  documents: vscode.DocumentFilter[],
  log: vscode.LogOutputChannel,
  hooks: Hooks,
): Client {
  const options: LanguageClientOptions = {
    documentSelector: documents as LanguageClientOptions["documentSelector"] & object,
    outputChannel: log,
    initializationFailedHandler: () => false, // whoever begins tells
    errorHandler: {
      error: (problem, message, count) =>
        client.hasBegun ? usual.error(problem, message, count) : { action: ErrorAction.Shutdown, handled: true },
      closed: () => (client.hasBegun ? usual.closed() : { action: CloseAction.DoNotRestart, handled: true }),
    },
    initializationOptions: {
      settings: forServer(
        vscode.workspace.getConfiguration().get("spec-lsp"),
        hooks.python(),
        vscode.workspace.isTrusted,
      ),
    },
    middleware: {
      executeCommand: (command, args, next) =>
        command === SHOW_RESOLVED ? hooks.showResolved(String(args[0]), Number(args[1])) : next(command, args),
      provideDiagnostics: async (document, previous, token, next) => {
        const report = await next(document, previous, token);
        if (report?.kind === vsdiag.DocumentDiagnosticReportKind.full) report.items.forEach(linkCode);
        return report;
      },
      handleDiagnostics: (uri, diagnostics, next) => {
        diagnostics.forEach(linkCode);
        next(uri, diagnostics);
      },
      workspace: {
        configuration: async (params, token, next) => {
          const tables = await next(params, token);
          return Array.isArray(tables)
            ? tables.map((table) => forServer(table, hooks.python(), vscode.workspace.isTrusted))
            : tables;
        },
      },
    },
  };
  const client: Client = new Client(
    "spec-lsp",
    "spec-lsp",
    { command: server.command, args: [...server.args], ...(server.cwd ? { options: { cwd: server.cwd } } : {}) },
    options,
  );
  const usual = client.createDefaultErrorHandler();
  client.registerFeature(new Abilities());
  client.onNotification(CHANGED, () => hooks.changed());
  return client;
}

/** What this client can do that the protocol has no word for. */
class Abilities implements StaticFeature {
  fillClientCapabilities(capabilities: ClientCapabilities): void {
    capabilities.experimental = { commands: { commands: [SHOW_RESOLVED] }, "spec-lsp": { changed: true } };
  }
  initialize(): void {}
  getState(): ReturnType<StaticFeature["getState"]> {
    return { kind: "static" };
  }
  clear(): void {}
}

/** The code of a problem leads to its rule, shown as a page: the server's own link is for editors that only open files. */
function linkCode(diagnostic: vscode.Diagnostic): void {
  const name = typeof diagnostic.code === "object" ? diagnostic.code.value : diagnostic.code;
  if (typeof name !== "string") return;
  const target = vscode.Uri.parse(`command:spec-lsp.explainRule?${encodeURIComponent(JSON.stringify([name]))}`);
  diagnostic.code = { value: name, target };
}
