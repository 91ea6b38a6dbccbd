import assert from "node:assert/strict";
import { test } from "node:test";
import { candidates, judge, read } from "../src/interpreter";
import { environment } from "../src/python";

const ALL = { version: [3, 12], linter: true, pygls: true, libcst: true } as const;

test("a setting is the only candidate", () => {
  assert.deepEqual(candidates("${workspaceFolder}/.venv/bin/python", "/usr/bin/python3", "/home/me/net"), [
    "/home/me/net/.venv/bin/python",
  ]);
});

test("else the Python extension's comes before those on PATH", () => {
  assert.deepEqual(candidates(" ", "/opt/env/bin/python", ""), ["/opt/env/bin/python", "python3", "python"]);
  assert.deepEqual(candidates("", "", ""), ["python3", "python"]);
});

test("an environment with all that is needed is used as it is", () => {
  assert.deepEqual(judge("python3", ALL), { usable: true, bundled: false, fixes: true, note: "" });
});

test("without the linter the bundled copy is used, and says so", () => {
  const verdict = judge("python3", { ...ALL, linter: false, pygls: false });
  assert.ok(verdict.usable && verdict.bundled && verdict.fixes);
  assert.match(verdict.note, /^flake8-torchperf is not installed in python3/);
});

test("so it is without the server's own requirement", () => {
  const verdict = judge("python3", { ...ALL, pygls: false });
  assert.ok(verdict.usable && verdict.bundled);
  assert.match(verdict.note, /^pygls 2 is not installed/);
});

test("without libcst nothing is fixed", () => {
  const verdict = judge("python3", { ...ALL, linter: false, libcst: false });
  assert.ok(verdict.usable && verdict.bundled && !verdict.fixes);
  assert.match(verdict.note, /Fixes need libcst/);
});

test("an old Python is none", () => {
  const verdict = judge("python", { ...ALL, version: [3, 9] });
  assert.deepEqual(verdict, { usable: false, reason: "python: Python 3.9 is too old; 3.10 or newer is needed" });
  assert.ok(!judge("python", { ...ALL, version: [2, 11] }).usable);
  assert.ok(judge("python", { ...ALL, version: [4, 0] }).usable);
});

test("what can't be started says why", () => {
  const probed = read({ status: -1, out: "", err: "spawn python3 ENOENT" });
  assert.deepEqual(judge("python3", probed), { usable: false, reason: "python3: spawn python3 ENOENT" });
  assert.equal(read({ status: 1, out: "", err: "" }), "exit status 1");
  assert.equal(read({ status: 0, out: "hello\n", err: "" }), "no answer that can be read: hello");
});

test("the bundled copy comes first on the path, and only where it is used", () => {
  const own = { PYTHONPATH: "/mine" };
  assert.match(environment({ command: "p", bundled: "/ext" }, own).PYTHONPATH ?? "", /^\/ext[:;]\/mine$/);
  assert.equal(environment({ command: "p", bundled: "" }, own).PYTHONPATH, "/mine");
  assert.ok(!("PYTHONPATH" in environment({ command: "p", bundled: "" }, {})));
});
