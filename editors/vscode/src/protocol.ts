/** What this extension and the server say to each other beyond the language server protocol. */

import type { Range } from "vscode-languageclient/node";

export interface Choice {
  readonly name: string;
}

export interface Hardware extends Choice {
  readonly title: string;
  readonly family: string;
}

export interface Rule extends Choice {
  readonly code: string;
  readonly severity: string;
  readonly summary: string;
}

/** The answer to `spec-lsp.choices`. */
export interface Choices {
  readonly releases: readonly Choice[];
  readonly hardware: readonly Hardware[];
  readonly rules: readonly Rule[];
}

/** A link of the resolved configuration: a rule by its name, or words of a document; neither where the document is gone. */
export interface Link {
  readonly rule?: string;
  readonly uri?: string;
  readonly range?: Range;
}

/** The answer to `spec-lsp.showResolved` with links: in the Markdown, `#n` leads to the n-th of them. */
export interface Resolved {
  readonly text: string;
  readonly links: readonly Link[];
}

/** Commands of the server. VS Code knows those of a running server too, so ours have other names. */
export const SHOW_RESOLVED = "spec-lsp.showResolved";
export const ASSUMED = "spec-lsp.assumed";
export const CHOICES = "spec-lsp.choices";
export const RULE_PAGE = "spec-lsp.rulePage";

/** Told by the server when the answers to its commands may be others now. */
export const CHANGED = "spec-lsp/changed";
