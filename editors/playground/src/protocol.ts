// The parts of the Language Server Protocol, and of spec-lsp's own commands, that the page reads.

export interface Position {
  readonly line: number;
  readonly character: number;
}

export interface Range {
  readonly start: Position;
  readonly end: Position;
}

export interface Diagnostic {
  readonly range: Range;
  readonly severity?: 1 | 2 | 3 | 4;
  readonly code?: string | number;
  readonly message: string;
  readonly data?: unknown;
}

export interface PublishedDiagnostics {
  readonly uri: string;
  readonly version?: number;
  readonly diagnostics: readonly Diagnostic[];
}

export interface TextEdit {
  readonly range: Range;
  readonly newText: string;
}

export interface CodeAction {
  readonly title: string;
  readonly kind?: string;
  readonly isPreferred?: boolean;
  readonly edit?: { readonly changes?: Readonly<Record<string, readonly TextEdit[]>> };
}

/** `spec-lsp.choices` */
export interface Choices {
  readonly releases: readonly { readonly name: string }[];
  readonly hardware: readonly { readonly name: string; readonly title: string; readonly family: string }[];
}

/** `spec-lsp.compare`: what two targets make of one launch. */
export interface Comparison {
  readonly title: string;
  readonly line: number;
  readonly sides: readonly Side[];
  readonly fields: readonly { readonly field: string; readonly values: readonly string[] }[];
}

export interface Side {
  readonly target: string;
  readonly outcome: string;
  readonly remarks: readonly { readonly rule: string; readonly severity: string; readonly message: string }[];
}

/** `spec-lsp.explainLog`: a refusal in what a server printed. */
export interface Explained {
  readonly where: string;
  readonly exception: string;
  readonly message: string;
  readonly sure: boolean;
  readonly rules: readonly { readonly name: string; readonly code: string; readonly summary: string }[];
  readonly findings: readonly { readonly message: string; readonly fixes: readonly string[] }[];
  readonly launch: string;
  readonly repaired: string;
}
