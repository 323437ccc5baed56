// The kinds of text that can be pasted: the name that the server reads it by, and the editor's language for it.
import { python } from "@codemirror/lang-python";
import { yaml } from "@codemirror/lang-yaml";
import { StreamLanguage } from "@codemirror/language";
import { dockerFile } from "@codemirror/legacy-modes/mode/dockerfile";
import { shell } from "@codemirror/legacy-modes/mode/shell";
import type { Extension } from "@codemirror/state";

export interface Kind {
  readonly id: string;
  readonly title: string;
  readonly file: string;
  readonly language: string;
  readonly highlight: () => Extension;
}

const asShell = () => StreamLanguage.define(shell);

export const KINDS: readonly Kind[] = [
  { id: "shell", title: "Shell script", file: "launch.sh", language: "shellscript", highlight: asShell },
  { id: "yaml", title: "YAML", file: "job.yaml", language: "yaml", highlight: yaml },
  { id: "compose", title: "Compose", file: "compose.yaml", language: "yaml", highlight: yaml },
  { id: "kubernetes", title: "Kubernetes", file: "deployment.yaml", language: "yaml", highlight: yaml },
  {
    id: "dockerfile",
    title: "Dockerfile",
    file: "Dockerfile",
    language: "dockerfile",
    highlight: () => StreamLanguage.define(dockerFile),
  },
  { id: "python", title: "Python", file: "serve.py", language: "python", highlight: python },
  { id: "log", title: "Server log or traceback", file: "server.log", language: "log", highlight: () => [] },
  { id: "config", title: "SGLang --config file", file: "config.yaml", language: "yaml", highlight: yaml },
];

export function kindOf(id: string): Kind {
  return KINDS.find((kind) => kind.id === id) ?? (KINDS[0] as Kind);
}
