// The commands, and the read-only documents that show what `torchperf` prints.

import { dirname } from "node:path";
import * as vscode from "vscode";
import { run, torchperf } from "./python";
import { Server } from "./server";
import { NOT_FOR_WHY, asOptions } from "./settings";

const SCHEME = "torchperf";
const FIX_ALL = "source.fixAll.torchperf";
const MARK_SYNC_FREE = "torchperf.server.markSyncFree";

/** Register all commands; returns what ends them. */
export function register(server: Server): vscode.Disposable[] {
  const pages = new Pages();
  const commands: Record<string, () => unknown> = {
    explain: () => explain(server, pages),
    why: () => why(server, pages),
    fixAll: () => vscode.commands.executeCommand("editor.action.sourceAction", { kind: FIX_ALL, apply: "first" }),
    markSyncFree: () => markSyncFree(server),
    showRule: () => showRule(server, pages),
    restart: () => server.restart(),
    showLog: () => server.log.show(),
  };
  return [
    vscode.workspace.registerTextDocumentContentProvider(SCHEME, pages),
    ...Object.entries(commands).map(([name, does]) =>
      vscode.commands.registerCommand(`torchperf.${name}`, does),
    ),
  ];
}

/** The texts of our documents, by their path. */
class Pages implements vscode.TextDocumentContentProvider {
  private readonly texts = new Map<string, string>();
  private readonly changed = new vscode.EventEmitter<vscode.Uri>();
  readonly onDidChange = this.changed.event;

  provideTextDocumentContent(uri: vscode.Uri): string {
    return this.texts.get(uri.path) ?? "";
  }

  /** Return the address of a document with this text. */
  put(name: string, text: string): vscode.Uri {
    const uri = vscode.Uri.from({ scheme: SCHEME, path: `/${name}` });
    this.texts.set(uri.path, text);
    this.changed.fire(uri);
    return uri;
  }
}

async function explain(server: Server, pages: Pages): Promise<void> {
  const editor = vscode.window.activeTextEditor;
  const codes = editor === undefined ? [] : codesAt(editor.document.uri, editor.selection.active);
  if (codes.length === 0) {
    void vscode.window.showInformationMessage("torchperf: there is no finding in this line");
    return;
  }
  const code = codes.length === 1 ? codes[0] : await vscode.window.showQuickPick(codes);
  await showPage(server, pages, code);
}

/** Return the codes of the findings at a place, or else in its line. */
function codesAt(uri: vscode.Uri, place: vscode.Position): string[] {
  const ours = vscode.languages.getDiagnostics(uri).filter((one) => one.source === "torchperf");
  const here = ours.filter((one) => one.range.contains(place));
  const inLine = ours.filter((one) => one.range.start.line <= place.line && place.line <= one.range.end.line);
  const found = here.length > 0 ? here : inLine;
  return [...new Set(found.map(({ code }) => String(typeof code === "object" ? code.value : code)))];
}

async function showRule(server: Server, pages: Pages): Promise<void> {
  const printed = await output(server, ["rules", "--format", "json", ...rules(server)]);
  if (printed === undefined) {
    return;
  }
  const listed = JSON.parse(printed) as { code: string; name: string; family: string }[];
  const items = listed.map(({ code, name, family }) => ({ label: code, description: name, detail: family }));
  const chosen = await vscode.window.showQuickPick(items, { matchOnDescription: true, matchOnDetail: true });
  await showPage(server, pages, chosen?.label);
}

async function showPage(server: Server, pages: Pages, code: string | undefined): Promise<void> {
  const text = code && (await output(server, ["explain", code, ...rules(server)]));
  if (text) {
    await vscode.commands.executeCommand("markdown.showPreview", pages.put(`${code}.md`, text));
  }
}

async function why(server: Server, pages: Pages): Promise<void> {
  const editor = vscode.window.activeTextEditor;
  if (editor?.document.uri.scheme !== "file") {
    return;
  }
  const { document, selection } = editor;
  const place = `${document.uri.fsPath}:${selection.active.line + 1}`;
  const options = asOptions(server.settings(), (name) => !NOT_FOR_WHY.includes(name));
  const text = await output(server, ["why", place, ...options], document.uri);
  if (text !== undefined) {
    const unsaved = document.isDirty ? "This is about the saved file: there are unsaved changes.\n\n" : "";
    const name = `why ${vscode.workspace.asRelativePath(document.uri)}:${selection.active.line + 1}`;
    const shown = await vscode.workspace.openTextDocument(pages.put(name, unsaved + text));
    await vscode.window.showTextDocument(shown, { viewColumn: vscode.ViewColumn.Beside, preview: true });
  }
}

async function markSyncFree(server: Server): Promise<void> {
  const editor = vscode.window.activeTextEditor;
  if (editor !== undefined) {
    await server.request(MARK_SYNC_FREE, [String(editor.document.uri), editor.selection.active.line]);
  }
}

function rules(server: Server): string[] {
  return asOptions(server.settings(), (name) => name === "rules");
}

/** Return what a `torchperf` command prints; shows why there is nothing. */
async function output(server: Server, words: string[], about?: vscode.Uri): Promise<string | undefined> {
  if (server.python === undefined) {
    void vscode.window.showErrorMessage("torchperf: the server has not started; the log says why");
    return undefined;
  }
  const folders = vscode.workspace.workspaceFolders;
  const own = about && (vscode.workspace.getWorkspaceFolder(about)?.uri.fsPath ?? dirname(about.fsPath));
  const { status, out, err } = await run(server.python, torchperf(...words), own ?? folders?.[0]?.uri.fsPath);
  if (status !== 0 && !out) {
    void vscode.window.showErrorMessage(err.trim() || `torchperf ${words[0]}: exit status ${status}`);
    return undefined;
  }
  return out;
}
