// The editor's colours on a dark page; those of a light page are CodeMirror's own.
import { HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { EditorView } from "@codemirror/view";
import { tags } from "@lezer/highlight";

export const darkTheme = [
  EditorView.theme(
    {
      "&": { color: "#d7dce2", backgroundColor: "#14181f" },
      ".cm-content": { caretColor: "#ffffff" },
      ".cm-cursor, .cm-dropCursor": { borderLeftColor: "#ffffff" },
      "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": {
        backgroundColor: "#33445c",
      },
      ".cm-activeLine": { backgroundColor: "#ffffff0a" },
      ".cm-gutters": { backgroundColor: "#14181f", color: "#8b96a5", border: "none" },
      ".cm-tooltip": { backgroundColor: "#1e242e", border: "1px solid #3a4352" },
      ".cm-tooltip-autocomplete > ul > li[aria-selected]": { backgroundColor: "#2f4a75", color: "#ffffff" },
    },
    { dark: true },
  ),
  syntaxHighlighting(
    HighlightStyle.define([
      { tag: [tags.keyword, tags.operator], color: "#c792ea" },
      { tag: [tags.string, tags.special(tags.string)], color: "#a5d6a7" },
      { tag: [tags.comment], color: "#8b96a5" },
      { tag: [tags.number, tags.bool, tags.atom], color: "#f2b880" },
      { tag: [tags.propertyName, tags.definition(tags.variableName), tags.attributeName], color: "#82b1ff" },
      { tag: [tags.variableName, tags.typeName], color: "#80cbc4" },
    ]),
  ),
];
