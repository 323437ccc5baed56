// The page: an editor that talks to the language server, its findings with fixes, and what SGLang will run with.
import { autocompletion, closeBrackets, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { bracketMatching, defaultHighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { type Diagnostic as LintDiagnostic, lintGutter, lintKeymap, setDiagnostics } from "@codemirror/lint";
import { hoverTooltips, LSPClient, LSPPlugin, serverCompletion } from "@codemirror/lsp-client";
import { highlightSelectionMatches, searchKeymap } from "@codemirror/search";
import { Compartment, EditorState, Prec } from "@codemirror/state";
import { drawSelection, EditorView, highlightActiveLine, keymap, lineNumbers } from "@codemirror/view";
import DOMPurify from "dompurify";
import { connect } from "./connection.ts";
import { darkTheme } from "./dark.ts";
import { KINDS, kindOf } from "./kinds.ts";
import type { Choices, CodeAction, Comparison, Diagnostic, Explained, PublishedDiagnostics } from "./protocol.ts";
import { fromFragment, type Shared, toFragment } from "./share.ts";

interface Example {
  readonly title: string;
  readonly kind: string;
  readonly sglang: string;
  readonly gpu: string;
  readonly text: string;
}

const SEVERITIES = ["", "error", "warning", "information", "hint"] as const;
const LINT = ["error", "error", "warning", "info", "hint"] as const;
const OUTCOMES: Readonly<Record<string, string>> = {
  accepted: "accepts it",
  refused: "refuses it",
  "bad-arguments": "refuses it: command line",
  depends: "depends on release or GPU",
  unknown: "not all is known",
};
const MOST_FIXES = 30;
/** Milliseconds without a key after which the server gets the text. */
const PAUSE = 150;

function element<T extends HTMLElement>(id: string): T {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no #${id}`);
  return found as T;
}

const kindMenu = element<HTMLSelectElement>("kind");
const releaseMenu = element<HTMLSelectElement>("sglang");
const gpuMenu = element<HTMLSelectElement>("gpu");
const besideRelease = element<HTMLSelectElement>("sglang-beside");
const besideGpu = element<HTMLSelectElement>("gpu-beside");
const comparing = element<HTMLInputElement>("comparing");
const exampleMenu = element<HTMLSelectElement>("example");
const status = element<HTMLElement>("status");
const findings = element<HTMLOListElement>("findings");
const summary = element<HTMLElement>("summary");
const resolved = element<HTMLElement>("resolved");
const compared = element<HTMLElement>("compared");
const rule = element<HTMLDialogElement>("rule");
const fixAll = element<HTMLButtonElement>("fix-all");

const language = new Compartment();
const server = new Compartment();
const theme = new Compartment();
const dark = matchMedia("(prefers-color-scheme: dark)");
let client: LSPClient | null = null;
let shownFor = 0;

const view = new EditorView({
  parent: element("editor"),
  state: EditorState.create({
    extensions: [
      lineNumbers(),
      lintGutter(),
      history(),
      drawSelection(),
      bracketMatching(),
      closeBrackets(),
      highlightActiveLine(),
      highlightSelectionMatches(),
      syntaxHighlighting(defaultHighlightStyle, { fallback: true }),
      autocompletion(),
      EditorState.tabSize.of(2),
      EditorView.lineWrapping,
      EditorView.contentAttributes.of({ "aria-label": "The launch", spellcheck: "false", autocapitalize: "off" }),
      Prec.high(keymap.of([{ key: "Mod-.", run: fixAtCursor }])),
      // Tab indents; Escape, then Tab leaves the editor, as CodeMirror's guide to accessibility has it.
      keymap.of([
        ...defaultKeymap,
        ...historyKeymap,
        ...searchKeymap,
        ...completionKeymap,
        ...lintKeymap,
        indentWithTab,
      ]),
      language.of([]),
      server.of([]),
      theme.of(dark.matches ? darkTheme : []),
      EditorView.updateListener.of((update) => {
        if (update.docChanged) typed();
      }),
    ],
  }),
});
dark.addEventListener("change", () => view.dispatch({ effects: theme.reconfigure(dark.matches ? darkTheme : []) }));

// --- the server --------------------------------------------------------------------------------------------------------

const uri = () => `playground:///${kindOf(kindMenu.value).file}`;

async function start(): Promise<void> {
  try {
    const transport = await connect((reason) => offline(reason || "The connection ended."));
    const made = new LSPClient({
      timeout: 20_000,
      sanitizeHTML: (html) => DOMPurify.sanitize(html), // what is pasted may come back in a hover
      initializationOptions: settings(),
      notificationHandlers: {
        "textDocument/publishDiagnostics": (_, params: PublishedDiagnostics) => published(params),
        "window/showMessage": () => true,
      },
      extensions: [
        serverCompletion(),
        hoverTooltips(),
        {
          clientCapabilities: {
            textDocument: {
              publishDiagnostics: { dataSupport: true, versionSupport: true },
              codeAction: { codeActionLiteralSupport: { codeActionKind: { valueSet: ["quickfix", "source.fixAll"] } } },
            },
          },
        },
      ],
    });
    client = made.connect(transport);
    await client.initializing;
    await fillMenus(client);
    say("");
  } catch (error) {
    offline(error instanceof Error ? error.message : String(error));
  }
}

function offline(why: string): void {
  client = null;
  view.dispatch({ effects: server.reconfigure([]) });
  say(`Not connected: ${why}`, "Connect again");
}

function say(text: string, again = ""): void {
  status.replaceChildren(text);
  if (again)
    status.append(
      " ",
      button(again, () => location.reload()),
    );
  status.hidden = !text;
}

/** Another kind or another world: the document is opened anew, since the server knows it by its name. */
async function open(): Promise<void> {
  const kind = kindOf(kindMenu.value);
  view.dispatch({ effects: [language.reconfigure(kind.highlight()), server.reconfigure([])] });
  if (!client) return;
  client.notification("workspace/didChangeConfiguration", { settings: settings() });
  view.dispatch({ effects: server.reconfigure(client.plugin(uri(), kind.language)) });
  settled();
}

function settings(): object {
  const named = sides().map((side) => Object.fromEntries(Object.entries(side).filter(([, value]) => value)));
  const several = named.length > 1 && named.every((side) => Object.keys(side).length);
  const world = several ? { sglang: "", gpu: "", targets: named } : { ...sides()[0], targets: [] };
  return { unsafeFixes: true, ...world };
}

function sides(): { sglang: string; gpu: string }[] {
  const first = { sglang: releaseMenu.value, gpu: gpuMenu.value };
  return comparing.checked ? [first, { sglang: besideRelease.value, gpu: besideGpu.value }] : [first];
}

function command<T>(name: string, ...words: unknown[]): Promise<T | null> {
  if (!client) return Promise.resolve(null);
  client.sync();
  return client.request<object, T | null>("workspace/executeCommand", { command: name, arguments: words });
}

async function fillMenus(of: LSPClient): Promise<void> {
  const choices = await of.request<object, Choices>("workspace/executeCommand", { command: "spec-lsp.choices" });
  const releases = choices.releases.map(({ name }) => new Option(name, name));
  for (const menu of [releaseMenu, besideRelease]) menu.append(...releases.map((o) => o.cloneNode(true)));
  const families = new Map<string, HTMLOptGroupElement>();
  for (const { name, title, family } of choices.hardware) {
    let group = families.get(family);
    if (!group) {
      group = Object.assign(document.createElement("optgroup"), { label: family.toUpperCase() });
      families.set(family, group);
    }
    group.append(new Option(title, name));
  }
  for (const menu of [gpuMenu, besideGpu]) menu.append(...[...families.values()].map((g) => g.cloneNode(true)));
}

// --- findings ----------------------------------------------------------------------------------------------------------

let current: { readonly version: number | undefined; readonly diagnostics: readonly Diagnostic[] } | null = null;

function published(params: PublishedDiagnostics): boolean {
  const plugin = LSPPlugin.get(view);
  const file = client?.workspace.getFile(uri());
  if (params.uri !== uri() || !plugin || params.version !== file?.version || !plugin.unsyncedChanges.empty) {
    return true; // of another text than the one on the page: those of the present one are on their way
  }
  current = { version: params.version, diagnostics: params.diagnostics };
  const lint: LintDiagnostic[] = params.diagnostics.map((diagnostic) => ({
    from: plugin.fromPosition(diagnostic.range.start, plugin.syncedDoc),
    to: plugin.fromPosition(diagnostic.range.end, plugin.syncedDoc),
    severity: LINT[diagnostic.severity ?? 1],
    source: String(diagnostic.code ?? ""),
    message: diagnostic.message,
  }));
  view.dispatch(
    setDiagnostics(
      view.state,
      lint.map((d) => ({ ...d, to: Math.max(d.from, d.to) })),
    ),
  );
  void show(++shownFor);
  return true;
}

let pause: ReturnType<typeof setTimeout> | undefined;

function typed(): void {
  document.body.dataset.stale = "";
  clearTimeout(pause);
  pause = setTimeout(settled, PAUSE);
}

/** The server says what it finds in a text that may launch something; of a log it is asked. */
function settled(): void {
  client?.sync();
  if (kindMenu.value !== "log") return;
  current = null;
  void show(++shownFor);
}

async function show(turn: number): Promise<void> {
  delete document.body.dataset.stale;
  const diagnostics = current?.diagnostics ?? [];
  const rows = diagnostics.map(row);
  findings.replaceChildren(...rows.map((r) => r.item));
  summary.textContent = summarised(diagnostics);
  fixAll.hidden = true;
  for (const [index, diagnostic] of diagnostics.slice(0, MOST_FIXES).entries()) {
    const actions = await actionsFor(diagnostic);
    if (turn !== shownFor) return;
    rows[index]?.offer(actions);
    if (actions.some((action) => action.kind === "quickfix" && action.isPreferred)) fixAll.hidden = false;
  }
  await Promise.all([showResolved(turn), showCompared(turn), showExplained(turn)]);
}

// --- why a server died -------------------------------------------------------------------------------------------------

async function showExplained(turn: number): Promise<void> {
  if (kindMenu.value !== "log") return;
  const found = await command<readonly Explained[]>("spec-lsp.explainLog", view.state.doc.toString(), sides()[0]);
  if (turn !== shownFor) return;
  findings.replaceChildren(...(found ?? []).map(refusal));
  summary.textContent = found?.length
    ? plural(found.length, "refusal", "refusals")
    : "There is no refusal of SGLang in this log: no traceback with its functions, and no error of its command line.";
  resolved.textContent = "";
}

function refusal(of: Explained): HTMLLIElement {
  const item = document.createElement("li");
  item.className = "error";
  const where = document.createElement("p");
  where.append("SGLang stopped in ", ...prose(`\`${of.where}\` with \`${of.exception}\``));
  item.append(where);
  if (!of.rules.length)
    item.append(paragraph("No rule is known for this place: it is new, or no decision about flags."));
  if (of.rules.length > 1 && !of.sure) item.append(paragraph("One of these rules; the likeliest comes first:"));
  for (const { name, summary: said } of of.rules) {
    const link = button(name, () => void showRule(name));
    link.className = "rule";
    const head = document.createElement("div");
    head.className = "head";
    head.append(link);
    item.append(head, paragraph(said));
  }
  for (const { message } of of.findings) item.append(paragraph(message));
  if (of.repaired) {
    const fixes = document.createElement("div");
    fixes.className = "fixes";
    const open = button("Open the repaired launch", () => {
      void load({ kind: "shell", text: `${of.repaired}\n`, sglang: releaseMenu.value, gpu: gpuMenu.value });
    });
    open.classList.add("preferred");
    fixes.append(open);
    item.append(fixes);
  }
  return item;
}

function paragraph(text: string): HTMLParagraphElement {
  const made = document.createElement("p");
  made.append(...prose(text));
  return made;
}

function summarised(diagnostics: readonly Diagnostic[]): string {
  if (!view.state.doc.length) return "Paste a launch: a script, a manifest, a Dockerfile, Python.";
  const count = (severity: number) => diagnostics.filter((d) => (d.severity ?? 1) === severity).length;
  const parts = [
    plural(count(1), "error", "errors"),
    plural(count(2), "warning", "warnings"),
    plural(count(3), "remark", "remarks"),
    plural(count(4), "hint", "hints"),
  ].filter(Boolean);
  return parts.length ? parts.join(", ") : "Nothing to report.";
}

function plural(count: number, one: string, many: string): string {
  return count ? `${count} ${count === 1 ? one : many}` : "";
}

function row(diagnostic: Diagnostic): { item: HTMLLIElement; offer: (actions: readonly CodeAction[]) => void } {
  const severity = SEVERITIES[diagnostic.severity ?? 1];
  const item = document.createElement("li");
  item.className = severity;
  const line = button(`line ${diagnostic.range.start.line + 1}`, () => goTo(diagnostic));
  line.className = "place";
  const label = document.createElement("strong");
  label.textContent = severity;
  const message = document.createElement("p");
  message.append(...prose(diagnostic.message));
  const name = String(diagnostic.code ?? "");
  const head = document.createElement("div");
  head.className = "head";
  head.append(label, line);
  if (name) {
    const link = button(name, () => void showRule(name));
    link.className = "rule";
    link.title = "Why, with examples";
    head.append(link);
  }
  const fixes = document.createElement("div");
  fixes.className = "fixes";
  item.append(head, message, fixes);
  return {
    item,
    offer: (actions) => {
      const offered = actions.filter(
        (action) => action.edit && action.kind === "quickfix" && !action.title.startsWith("Ignore"),
      );
      fixes.replaceChildren(...offered.map((action) => fixButton(action)));
    },
  };
}

function fixButton(action: CodeAction): HTMLButtonElement {
  const made = button("", () => apply(action));
  made.append(...prose(action.title));
  if (action.isPreferred) made.classList.add("preferred");
  return made;
}

/** Text in which `code` stands between backticks. */
function prose(text: string): (string | HTMLElement)[] {
  return text.split("`").map((part, index) => {
    if (index % 2 === 0) return part;
    const code = document.createElement("code");
    code.textContent = part;
    return code;
  });
}

function button(text: string, act: () => void): HTMLButtonElement {
  const made = document.createElement("button");
  made.type = "button";
  made.textContent = text;
  made.addEventListener("click", act);
  return made;
}

function goTo(diagnostic: Diagnostic): void {
  const plugin = LSPPlugin.get(view);
  if (!plugin) return;
  const { start, end } = diagnostic.range;
  view.dispatch({
    selection: { anchor: plugin.fromPosition(start), head: plugin.fromPosition(end) },
    scrollIntoView: true,
  });
  view.focus();
}

async function actionsFor(diagnostic: Diagnostic): Promise<readonly CodeAction[]> {
  if (!client) return [];
  const params = {
    textDocument: { uri: uri() },
    range: diagnostic.range,
    context: { diagnostics: [diagnostic], only: ["quickfix"] },
  };
  try {
    return (await client.request<object, readonly CodeAction[] | null>("textDocument/codeAction", params)) ?? [];
  } catch {
    return []; // somebody typed meanwhile: the next findings bring their own
  }
}

function apply(action: CodeAction): void {
  const plugin = LSPPlugin.get(view);
  const edits = action.edit?.changes?.[uri()];
  if (!plugin || !edits) return;
  const changes = edits.map((edit) => ({
    from: plugin.fromPosition(edit.range.start),
    to: plugin.fromPosition(edit.range.end),
    insert: edit.newText,
  }));
  view.dispatch({ changes, scrollIntoView: true, userEvent: "input.fix" });
  view.focus();
}

function fixAtCursor(): boolean {
  const at = view.state.doc.lineAt(view.state.selection.main.head).number - 1;
  const here = current?.diagnostics.filter((d) => d.range.start.line <= at && at <= d.range.end.line) ?? [];
  void Promise.all(here.map(actionsFor)).then((found) => {
    const best = found.flat().find((action) => action.isPreferred && action.edit);
    if (best) apply(best);
  });
  return true;
}

async function applyAll(): Promise<void> {
  client?.sync();
  const params = {
    textDocument: { uri: uri() },
    range: { start: { line: 0, character: 0 }, end: { line: 0, character: 0 } },
    context: { diagnostics: [], only: ["source.fixAll.spec-lsp"] },
  };
  const [action] =
    (await client?.request<object, readonly CodeAction[] | null>("textDocument/codeAction", params)) ?? [];
  if (action) apply(action);
}

async function showRule(name: string): Promise<void> {
  const page = await command<string>("spec-lsp.rulePage", name);
  const plugin = LSPPlugin.get(view);
  if (!page || !plugin) return;
  element("rule-text").innerHTML = plugin.docToHTML({ kind: "markdown", value: page });
  rule.showModal();
}

// --- what SGLang will run with -----------------------------------------------------------------------------------------

async function showResolved(turn: number): Promise<void> {
  const line = view.state.doc.lineAt(view.state.selection.main.head).number - 1;
  const page = await command<string>("spec-lsp.showResolved", uri(), line);
  const plugin = LSPPlugin.get(view);
  if (turn !== shownFor || !plugin) return;
  if (page) resolved.innerHTML = plugin.docToHTML({ kind: "markdown", value: page });
  else resolved.textContent = "No launch of SGLang is in this text.";
}

async function showCompared(turn: number): Promise<void> {
  compared.hidden = !comparing.checked;
  if (!comparing.checked) return;
  const found = await command<readonly Comparison[]>("spec-lsp.compare", uri(), ...sides());
  if (turn !== shownFor) return;
  compared.replaceChildren(...(found?.length ? found.map(comparison) : ["No launch of SGLang is in this text."]));
}

function comparison(of: Comparison): HTMLElement {
  const table = document.createElement("table");
  const caption = table.createCaption();
  caption.textContent = `${of.title} (line ${of.line + 1})`;
  const head = table.createTHead().insertRow();
  head.append(cell("th", ""), ...of.sides.map((side) => cell("th", side.target)));
  const body = table.createTBody();
  const outcomes = body.insertRow();
  outcomes.append(
    cell("th", "SGLang"),
    ...of.sides.map((side) => cell("td", OUTCOMES[side.outcome] ?? side.outcome, side.outcome)),
  );
  const said = body.insertRow();
  said.append(cell("th", "says"), ...of.sides.map(remarks));
  for (const { field, values } of of.fields) {
    const line = body.insertRow();
    line.append(cell("th", field), ...values.map((value) => cell("td", value)));
  }
  if (!of.fields.length) {
    const line = body.insertRow();
    const same = cell("td", "The resolved configurations are the same.");
    same.colSpan = of.sides.length + 1;
    line.append(same);
  }
  return table;
}

function remarks(side: Comparison["sides"][number]): HTMLTableCellElement {
  const made = cell("td", "");
  for (const { severity, message } of side.remarks) {
    const line = document.createElement("p");
    line.className = severity;
    line.append(...prose(message));
    made.append(line);
  }
  if (!side.remarks.length) made.textContent = "nothing";
  return made;
}

function cell(tag: "td" | "th", text: string, kind = ""): HTMLTableCellElement {
  const made = document.createElement(tag);
  made.textContent = text;
  if (kind) made.className = kind;
  if (tag === "th") made.scope = text ? "row" : "col";
  return made;
}

// --- menus, examples, sharing ------------------------------------------------------------------------------------------

function present(): Shared {
  const [, beside] = sides();
  return {
    kind: kindMenu.value,
    text: view.state.doc.toString(),
    sglang: releaseMenu.value,
    gpu: gpuMenu.value,
    beside: beside ?? null,
  };
}

async function load(shared: Omit<Shared, "beside"> & { readonly beside?: Shared["beside"] }): Promise<void> {
  kindMenu.value = kindOf(shared.kind).id;
  select(releaseMenu, shared.sglang);
  select(gpuMenu, shared.gpu);
  comparing.checked = Boolean(shared.beside);
  select(besideRelease, shared.beside?.sglang ?? "");
  select(besideGpu, shared.beside?.gpu ?? "");
  element("beside").hidden = !comparing.checked;
  view.dispatch({ effects: server.reconfigure([]) });
  view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: shared.text }, selection: { anchor: 0 } });
  await open();
}

/** A value that the menu has; the first entry (any) for one that it has not. */
function select(menu: HTMLSelectElement, value: string): void {
  menu.value = value;
  if (menu.selectedIndex < 0) menu.selectedIndex = 0;
}

async function share(): Promise<void> {
  const address = new URL(location.href);
  address.hash = await toFragment(present());
  window.history.replaceState(null, "", address);
  try {
    await navigator.clipboard.writeText(address.href);
    announce("The link is in the clipboard. The text is in the link itself: nobody else has it.");
  } catch {
    announce("The address bar has the link. The text is in the link itself: nobody else has it.");
  }
}

function announce(text: string): void {
  const told = element("told");
  told.textContent = text;
  setTimeout(() => {
    if (told.textContent === text) told.textContent = "";
  }, 6000);
}

async function main(): Promise<void> {
  kindMenu.append(...KINDS.map(({ id, title }) => new Option(title, id)));
  for (const menu of [kindMenu, releaseMenu, gpuMenu, besideRelease, besideGpu])
    menu.addEventListener("change", () => void open());
  comparing.addEventListener("change", () => {
    element("beside").hidden = !comparing.checked;
    void open();
  });
  element("share").addEventListener("click", () => void share());
  element("close-rule").addEventListener("click", () => rule.close());
  fixAll.addEventListener("click", () => void applyAll());
  const examples = (await (await fetch("examples.json")).json()) as readonly Example[];
  exampleMenu.append(...examples.map(({ title }, index) => new Option(title, String(index))));
  exampleMenu.addEventListener("change", () => {
    const chosen = examples[Number(exampleMenu.value)];
    if (chosen && exampleMenu.value) void load(chosen);
    exampleMenu.value = "";
  });
  say("Connecting …");
  await start();
  const shared = await fromFragment(location.hash.slice(1));
  const first = shared ?? examples[0];
  if (first) await load(first);
  window.addEventListener("hashchange", async () => {
    const other = await fromFragment(location.hash.slice(1));
    if (other) await load(other);
  });
}

void main();
