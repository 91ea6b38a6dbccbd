import assert from "node:assert/strict";
import { test } from "node:test";
import { NOT_FOR_WHY, asOptions, settingsOf } from "../src/settings";
import manifest from "../package.json";

const PROPERTIES = Object.keys(manifest.contributes.configuration.properties);

test("only what is set is sent, and never the interpreter", () => {
  const set: Record<string, unknown> = { interpreter: "python3", scope: "loop", explain: false, hot: null };
  assert.deepEqual(settingsOf(PROPERTIES, (name) => set[name]), { scope: "loop", explain: false });
});

test("every setting is null by default", () => {
  for (const [name, one] of Object.entries(manifest.contributes.configuration.properties)) {
    assert.equal(one.default, null, name);
    assert.ok(one.type.includes("null"), name);
  }
});

test("settings become options", () => {
  const settings = { scope: "all", hot: ["a", "B.*"], explain: true, preview: false, cache: true };
  const options = asOptions(settings, (name) => !NOT_FOR_WHY.includes(name));
  assert.deepEqual(options, ["--scope=all", "--hot=a,B.*", "--explain", "--no-preview"]);
});

test("every command of the manifest has a title in one category", () => {
  for (const { command, category } of manifest.contributes.commands) {
    assert.match(command, /^torchperf\./);
    assert.equal(category, "torchperf");
  }
});
