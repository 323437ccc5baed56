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

const PATIENCE_MS = 5000;

export class Python implements vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<void>();
  private subscription: vscode.Disposable | undefined;
  private selected: string | undefined;

  readonly onDidChange = this.changed.event;

  /** What is selected; that of an extension that is slow to start comes later, as a change. */
  static async find(): Promise<Python> {
    const python = new Python();
    await Promise.race([python.connect(), new Promise((resolve) => setTimeout(resolve, PATIENCE_MS))]);
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

  private async connect(): Promise<void> {
    const environments = (await pythonApi())?.environments;
    if (!environments) return;
    this.subscription = environments.onDidChangeActiveEnvironmentPath(() => this.look(environments));
    await this.look(environments);
  }

  private async look(environments: PythonApi["environments"]): Promise<void> {
    const before = this.selected;
    try {
      const path = environments.getActiveEnvironmentPath(vscode.workspace.workspaceFolders?.[0]?.uri);
      this.selected = (await environments.resolveEnvironment(path))?.executable.uri?.fsPath;
    } catch {
      this.selected = undefined; // an environment that cannot be told is as good as none
    }
    if (this.selected !== before) this.changed.fire();
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
