/** The selected Python environment, as Microsoft's Python extension tells it; nothing where that is not installed. */

import * as vscode from "vscode";

/** The part of its API that is used here. */
interface PythonApi {
  readonly environments: {
    getActiveEnvironmentPath(resource?: vscode.Uri): { readonly path: string };
    resolveEnvironment(environment: {
      readonly path: string;
    }): Promise<{ readonly executable: { readonly uri?: vscode.Uri } } | undefined>;
    readonly onDidChangeActiveEnvironmentPath: vscode.Event<unknown>;
  };
}

export class Python implements vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<void>();
  private subscription: vscode.Disposable | undefined;
  private selected: string | undefined;

  readonly onDidChange = this.changed.event;

  private constructor(private readonly api: PythonApi | undefined) {}

  static async find(): Promise<Python> {
    const python = new Python(await pythonApi());
    await python.look();
    python.subscription = python.api?.environments.onDidChangeActiveEnvironmentPath(async () => {
      const before = python.selected;
      await python.look();
      if (python.selected !== before) python.changed.fire();
    });
    return python;
  }

  /** The selected interpreter. */
  get interpreter(): string | undefined {
    return this.selected;
  }

  /** The selected interpreter, if what it holds may be run: in a folder that is not trusted it may be the folder's own. */
  get runnable(): string | undefined {
    return vscode.workspace.isTrusted ? this.selected : undefined;
  }

  dispose(): void {
    vscode.Disposable.from(this.changed, ...(this.subscription ? [this.subscription] : [])).dispose();
  }

  private async look(): Promise<void> {
    const environments = this.api?.environments;
    if (!environments) return;
    const path = environments.getActiveEnvironmentPath(vscode.workspace.workspaceFolders?.[0]?.uri);
    const environment = await environments.resolveEnvironment(path);
    this.selected = environment?.executable.uri?.fsPath;
  }
}

async function pythonApi(): Promise<PythonApi | undefined> {
  const extension = vscode.extensions.getExtension<PythonApi>("ms-python.python");
  try {
    const api = await extension?.activate();
    return api?.environments ? api : undefined;
  } catch {
    return undefined; // an extension that fails is as good as none
  }
}
