// The page: an editor, the findings in its text below it, and the settings above.

import { showAccount } from "./account";
import { goTo, makeEditor, replaceText, showFindings } from "./editor";
import { element, prose } from "./elements";
import { Linter, Newest } from "./linter";
import type { Finding, Linted, Settings } from "./protocol";
import { CONFIDENCES, DEFAULTS, fromFragment, SCOPES, toFragment } from "./sharing";
import "./style.css";

// The example, which build.mjs fills in.
declare const EXAMPLE: string;

const HERE = new URL("./", import.meta.url);
const PAUSE = 300; // milliseconds from the last key to the next run
const NOTHING: Linted = { problem: "", line: 0, hint: "", findings: [] };
const RULES = "../rules/"; // from docs/try.html

function choice(label: string, words: string[]): { field: HTMLElement; select: HTMLSelectElement } {
  const select = element("select", {}, ...words.map((word) => element("option", {}, word)));
  return { field: element("label", {}, `${label} `, select), select };
}

function start(root: HTMLElement, example: string): void {
  const linter = new Linter(new URL("worker.js", HERE));
  const scope = choice("Scope", SCOPES);
  const confidence = choice("Confidence", CONFIDENCES);
  const preview = element("input", { type: "checkbox" });
  const copy = element("button", { type: "button", class: "try-copy" }, "Copy link");
  const status = element("p", { class: "try-status", role: "status" }, "Loading Python …");
  const list = element("ol", { class: "try-findings" });
  const place = element("div", { class: "try-editor" });
  const settings = element("div", { class: "try-settings" }, scope.field, confidence.field);
  settings.append(element("label", {}, preview, " Preview rules"), copy);
  root.replaceChildren(settings, place, status, list);

  const chosen = (): Settings => ({
    scope: scope.select.value,
    confidence: confidence.select.value,
    preview: preview.checked,
  });
  const choose = (given: Settings) => {
    scope.select.value = given.scope;
    confidence.select.value = given.confidence;
    preview.checked = given.preview;
  };
  const text = () => editor.state.doc.toString();
  let loaded = false;

  const show = (linted: Linted, of: string, by: Settings) => {
    showFindings(editor, linted);
    const count = linted.findings.length;
    const found = `${count || "No"} finding${count === 1 ? "" : "s"}`;
    status.textContent = linted.problem
      ? `${linted.line ? `Line ${linted.line}: ` : ""}${linted.problem}`
      : [found, linted.hint].filter(Boolean).join(". ");
    list.replaceChildren(...linted.findings.map((finding) => item(finding, of, by)));
  };
  // Findings of another text than the one shown would point to the wrong lines.
  const clear = () => {
    if (loaded) status.textContent = "Linting …";
    list.replaceChildren();
    showFindings(editor, NOTHING);
  };
  const item = (finding: Finding, of: string, by: Settings): HTMLElement => {
    const told = element("span", {}, ...prose(finding.message));
    const where = element("span", { class: "try-where" }, `${finding.line}:${finding.column + 1}`);
    const summary = element("summary", {}, where, " ", element("strong", {}, finding.code), " ", told);
    const rule = element("a", { href: `${RULES}${finding.page}.html` }, `${finding.code} ${finding.rule}`);
    const body = element("div", { class: "try-body" }, "Asking …");
    const details = element("details", { "data-finding": finding.id }, summary, body);
    const opened = async () => {
      if (!details.open) return;
      goTo(editor, finding);
      if (details.dataset.told) return;
      details.dataset.told = "asked";
      try {
        const account = await linter.why(of, by, finding.id);
        body.replaceChildren(element("p", {}, "Rule: ", rule));
        if (account) body.append(showAccount(finding, account));
        details.dataset.told = "yes";
      } catch (error) {
        body.textContent = String(error);
      }
    };
    details.addEventListener("toggle", () => void opened());
    return element("li", {}, details);
  };

  const run = new Newest<void>(async () => {
    const [of, by] = [text(), chosen()];
    clear();
    try {
      const linted = await linter.lint(of, by);
      loaded = true;
      if (of === text()) show(linted, of, by);
    } catch (error) {
      status.textContent = `Not linted: ${error instanceof Error ? error.message : error}`;
    }
  });
  let timer = 0;
  const later = () => {
    clear();
    window.clearTimeout(timer);
    timer = window.setTimeout(() => void run.ask(), PAUSE);
  };
  const editor = makeEditor(place, example, later);
  settings.addEventListener("change", () => void run.ask());

  const restore = async () => {
    try {
      const shared = await fromFragment(window.location.hash);
      if (shared) {
        choose(shared.settings);
        replaceText(editor, shared.text);
      }
    } catch {
      status.textContent = "The link holds no readable code.";
    }
    await run.ask();
  };
  copy.addEventListener("click", async () => {
    window.history.replaceState(null, "", await toFragment({ text: text(), settings: chosen() }));
    try {
      await navigator.clipboard.writeText(window.location.href);
      status.textContent = "The link is copied.";
    } catch {
      status.textContent = "The address bar holds the link.";
    }
  });
  window.addEventListener("hashchange", () => void restore());
  choose(DEFAULTS);
  void restore();
}

const root = document.getElementById("torchperf-try");
if (root) start(root, EXAMPLE);
