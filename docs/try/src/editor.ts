// The editor: Python, findings underlined and marked in the gutter. style.css has its colours.

import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { python } from "@codemirror/lang-python";
import { bracketMatching, indentOnInput, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { type Diagnostic, lintGutter, setDiagnostics } from "@codemirror/lint";
import { EditorState, type Text } from "@codemirror/state";
import { drawSelection, EditorView, highlightActiveLine, keymap, lineNumbers } from "@codemirror/view";
import { classHighlighter } from "@lezer/highlight";
import type { Finding, Linted } from "./protocol";

// By how often a finding is paid for, as the language server shows it.
const SEVERITIES: Record<string, Diagnostic["severity"]> = {
  error: "error",
  warning: "warning",
  note: "hint",
  "per element": "warning",
  "per step": "info",
  "per call": "hint",
};

export function makeEditor(parent: HTMLElement, text: string, changed: () => void): EditorView {
  return new EditorView({
    parent,
    state: EditorState.create({
      doc: text,
      extensions: [
        lineNumbers(),
        lintGutter(),
        history(),
        drawSelection(),
        highlightActiveLine(),
        indentOnInput(),
        bracketMatching(),
        indentUnit.of("    "),
        python(),
        syntaxHighlighting(classHighlighter),
        keymap.of([...defaultKeymap, ...historyKeymap, indentWithTab]),
        EditorView.contentAttributes.of({ "aria-label": "Python code" }),
        EditorView.updateListener.of((update) => {
          if (update.docChanged) changed();
        }),
      ],
    }),
  });
}

export function replaceText(editor: EditorView, text: string): void {
  editor.dispatch({ changes: { from: 0, to: editor.state.doc.length, insert: text } });
}

export function showFindings(editor: EditorView, linted: Linted): void {
  const { doc } = editor.state;
  const marks = linted.findings.map((finding) => diagnostic(finding, doc));
  if (linted.problem && linted.line) {
    const line = doc.line(Math.min(linted.line, doc.lines));
    marks.push({ from: line.from, to: line.to, severity: "error", message: linted.problem });
  }
  editor.dispatch(setDiagnostics(editor.state, marks));
}

export function goTo(editor: EditorView, finding: Finding): void {
  const { from, to } = diagnostic(finding, editor.state.doc);
  editor.dispatch({
    selection: { anchor: from, head: to },
    effects: EditorView.scrollIntoView(from, { y: "center" }),
  });
}

function diagnostic(finding: Finding, doc: Text): Diagnostic {
  return {
    from: offset(doc, finding.line, finding.column),
    to: offset(doc, finding.endLine, finding.endColumn),
    severity: SEVERITIES[finding.severity || finding.cost] ?? "warning",
    source: finding.code,
    message: finding.message,
  };
}

// The text may have become shorter since it was linted.
function offset(doc: Text, line: number, column: number): number {
  const found = doc.line(Math.min(line, doc.lines));
  return Math.min(found.from + column, found.to);
}
