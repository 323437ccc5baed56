/** Picking the release and the hardware that launches are checked for, in two steps. */

import * as vscode from "vscode";
import type { Choices, Hardware } from "./protocol";
import { type Assumed, withoutEffect } from "./statusText";

interface Item extends vscode.QuickPickItem {
  /** What is written into the setting; undefined takes the setting away. */
  readonly value?: string | undefined;
}

const TITLE = "SGLang release and hardware";
const PATIENCE_MS = 3000;

/** `assumed` asks the server what it assumes of the launch in front; `changed` tells when that may be something else. */
export async function choose(
  choices: Choices,
  assumed: () => Promise<Assumed | null>,
  changed: vscode.Event<void>,
): Promise<void> {
  const settings = vscode.workspace.getConfiguration("spec-lsp");
  const now = await assumed();
  let release: Item | undefined;
  let hardware: Item | undefined | "back" = "back";
  while (hardware === "back") {
    const first = await step(
      1,
      releases(choices, now),
      settings.get("sglang", ""),
      said(now?.releaseFrom, now?.release),
    );
    if (!first || first === "back") return;
    release = first;
    hardware = await step(2, gpus(choices, now), settings.get("gpu", ""), said(now?.hardwareFrom, now?.hardwareTitle));
  }
  if (!release || !hardware) return;
  const target = vscode.workspace.workspaceFolders
    ? vscode.ConfigurationTarget.Workspace
    : vscode.ConfigurationTarget.Global;
  const heard = next(changed);
  await settings.update("sglang", release.value, target);
  await settings.update("gpu", hardware.value, target);
  await heard;
  const problem = withoutEffect({ release: release.value ?? "", hardware: hardware.value ?? "" }, await assumed());
  if (problem) await vscode.window.showInformationMessage(problem);
}

function releases(choices: Choices, now: Assumed | null): Item[] {
  const [newest] = choices.releases;
  const items = choices.releases.map((r) => ({
    label: r.name,
    value: r.name,
    ...(r === newest ? { description: "newest" } : {}),
  }));
  return [asFilesSay(now?.releaseFrom === "not named" ? "the newest where nothing names one" : ""), ...items];
}

function gpus(choices: Choices, now: Assumed | null): Item[] {
  const items: Item[] = [asFilesSay(now?.hardwareFrom === "not named" ? "any where nothing names one" : "")];
  const families = choices.hardware.filter((h) => h.family === h.name && choices.hardware.some((o) => within(o, h)));
  for (const family of families) {
    items.push({ label: family.title, kind: vscode.QuickPickItemKind.Separator });
    items.push({ label: family.title, description: `${family.name} · any of them`, value: family.name });
    items.push(...choices.hardware.filter((h) => within(h, family)).map(gpu));
  }
  const others = choices.hardware.filter((h) => !families.some((f) => f === h || within(h, f)));
  return [...items, { label: "Others", kind: vscode.QuickPickItemKind.Separator }, ...others.map(gpu)];
}

function within(hardware: Hardware, family: Hardware): boolean {
  return hardware.family === family.name && hardware.name !== family.name;
}

function gpu(hardware: Hardware): Item {
  return { label: hardware.title, description: hardware.name, value: hardware.name };
}

function asFilesSay(otherwise: string): Item {
  return { label: "$(file-code) As the files say", description: otherwise, value: undefined };
}

/** What will go before the choice, where that is known. */
function said(from: string | undefined, what: string | undefined): string {
  return from === "directive" ? `This file's own comment says ${what}, and goes before the settings` : "";
}

async function step(number: number, items: Item[], current: string, note: string): Promise<Item | "back" | undefined> {
  const pick = vscode.window.createQuickPick<Item>();
  pick.title = TITLE;
  pick.step = number;
  pick.totalSteps = 2;
  pick.placeholder =
    note || (number === 1 ? "Release of SGLang that launches run on" : "Hardware that launches run on");
  pick.matchOnDescription = true;
  pick.items = items;
  pick.activeItems = items.filter((item) => (item.value ?? "") === current && item.kind === undefined).slice(0, 1);
  if (number > 1) pick.buttons = [vscode.QuickInputButtons.Back];
  try {
    return await new Promise((resolve) => {
      pick.onDidAccept(() => resolve(pick.activeItems[0]));
      pick.onDidTriggerButton(() => resolve("back"));
      pick.onDidHide(() => resolve(undefined));
      pick.show();
    });
  } finally {
    pick.dispose();
  }
}

function next(event: vscode.Event<void>): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(done, PATIENCE_MS);
    const subscription = event(done);
    function done(): void {
      clearTimeout(timer);
      subscription.dispose();
      resolve();
    }
  });
}
