/** Which documents are the server's, read from the events that wake this extension: the manifest says it once. */

import type { DocumentFilter } from "vscode";

const SCHEMES = ["file", "untitled"];

/** A notebook's cells are texts of their own; `%%bash` is written in one of Python. */
const CELLS = ["python", "shellscript"].map((language) => ({ scheme: "vscode-notebook-cell", language }));

/** Of plain text only what is named like something that launches: VS Code itself knows no better for these. */
const EXTENSIONS = "slurm,sbatch,sub,env,command,bats,service,just,tf,tofu,hcl";
const NAMES = "justfile,.justfile,Procfile,Procfile.*,Jenkinsfile,Jenkinsfile.*,supervisord*.conf";
const PLAIN = `**/{*.{${EXTENSIONS}},${NAMES}}`;

/** What of their settings cannot be used is told in them. They wake nothing. */
const SETTINGS = { scheme: "file", pattern: "**/{spec-lsp.toml,pyproject.toml}" };

export function selector(manifest: { activationEvents: string[] }): DocumentFilter[] {
  const languages = manifest.activationEvents
    .filter((event) => event.startsWith("onLanguage:"))
    .map((event) => event.slice("onLanguage:".length));
  const documents = languages.flatMap((language) =>
    language === "plaintext"
      ? [{ scheme: "file", language, pattern: PLAIN }]
      : SCHEMES.map((scheme) => ({ scheme, language })),
  );
  return [...documents, ...CELLS, SETTINGS];
}
