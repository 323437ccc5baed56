/** What this extension and the server say to each other beyond the language server protocol. */

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

/** Commands of the server. VS Code knows those of a running server too, so ours have other names. */
export const SHOW_RESOLVED = "spec-lsp.showResolved";
export const ASSUMED = "spec-lsp.assumed";
export const CHOICES = "spec-lsp.choices";
export const RULE_PAGE = "spec-lsp.rulePage";

/** Told by the server when the answers to its commands may be others now. */
export const CHANGED = "spec-lsp/changed";
