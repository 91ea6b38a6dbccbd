// The messages between the page and the worker, and the JSON that linting.py returns.

export interface Settings {
  scope: string;
  confidence: string;
  preview: boolean;
}

export interface Offer {
  safety: string;
  name: string;
}

// Lines count from 1, columns from 0 in UTF-16 units.
export interface Finding {
  id: string;
  code: string;
  rule: string;
  page: string;
  message: string;
  severity: string;
  cost: string;
  line: number;
  column: number;
  endLine: number;
  endColumn: number;
  fixes: Offer[];
}

// `problem` says why the text could not be analysed, and `line` where; `hint` what a text without
// findings lacks. They are empty otherwise.
export interface Linted {
  problem: string;
  line: number;
  hint: string;
  findings: Finding[];
}

export interface Fix extends Offer {
  changes: string;
  diff: string;
}

export interface Judged {
  code: string;
  message: string;
  reported: boolean;
  tensor: string;
  sure: string;
  residence: string;
  frequency: string;
  calls: string[];
  row: string;
  rule: string;
  decided: string;
  changes: string[];
}

export interface Known {
  expression: string;
  kind: string;
  residence: string;
  reason: string;
}

export interface Account {
  function: string;
  frequency: string;
  findings: Judged[];
  values: Known[];
  fixes: Fix[];
}

export type Request = { id: number; text: string; settings: Settings } & (
  | { kind: "lint" }
  | { kind: "why"; place: string }
);

export type Reply = { id: number; json: string } | { id: number; failed: string };
