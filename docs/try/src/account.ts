// Shows why a finding is reported, what is known of the values in its line, and its fixes.

import { element, prose } from "./elements";
import type { Account, Finding, Fix, Judged, Known } from "./protocol";

export function showAccount(finding: Finding, account: Account): HTMLElement {
  const judged = account.findings.find((one) => one.code === finding.code && one.message === finding.message);
  const shown = element("div", { class: "try-account" });
  if (judged) shown.append(facts(judged, account));
  if (account.values.length) shown.append(heading("Values"), values(account.values));
  if (account.fixes.length) shown.append(heading("Fixes"), ...account.fixes.map(fix));
  return shown;
}

function heading(text: string): HTMLElement {
  return element("p", { class: "try-heading" }, text);
}

function facts(judged: Judged, account: Account): HTMLElement {
  const list = element("dl");
  const add = (name: string, ...told: string[]) => {
    list.append(element("dt", {}, name), ...told.map((one) => element("dd", {}, ...prose(one))));
  };
  add("In", account.function ? `\`${account.function}\`` : "the module");
  add("Why it is a tensor", judged.sure ? `${judged.tensor} (${judged.sure})` : judged.tensor);
  if (judged.residence) add("Where it lies", judged.residence);
  add("How often it runs", judged.frequency, ...judged.calls.map((call) => `called by ${call}`));
  add("Decided", `${judged.decided}. ${judged.rule}`);
  add("What would change it", ...judged.changes);
  return list;
}

function values(known: Known[]): HTMLElement {
  const list = element("ul");
  for (const one of known) {
    const reason = one.reason ? [", since ", ...prose(one.reason)] : [];
    list.append(element("li", {}, element("code", {}, one.expression), `: ${one.kind}`, ...reason));
  }
  return list;
}

function fix(one: Fix): HTMLElement {
  const changes = one.changes ? [". What changes: ", ...prose(one.changes)] : [];
  const head = element("p", {}, element("code", {}, one.name), ` (${one.safety})`, ...changes);
  return element("div", { class: "try-fix" }, head, one.diff ? diff(one.diff) : missing());
}

function missing(): HTMLElement {
  return element(
    "p",
    { class: "try-note" },
    "No diff: the fix can't be made in this text, or the text has syntax newer than the parser in the " +
      "browser knows. ",
    element("code", {}, "torchperf fix --diff"),
    " shows it.",
  );
}

function diff(text: string): HTMLElement {
  const shown = element("pre", { class: "try-diff", tabindex: "0", "aria-label": "Diff of the fix" });
  for (const line of text.split("\n").slice(2)) {
    const kind = { "+": "try-added", "-": "try-removed", "@": "try-place" }[line[0] ?? ""] ?? "";
    shown.append(element("span", kind ? { class: kind } : {}, line || " "));
  }
  return shown;
}
