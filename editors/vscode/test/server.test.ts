// The server as the extension starts it, through a client over standard input and output.

import assert from "node:assert/strict";
import { ChildProcess, spawn } from "node:child_process";
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { pathToFileURL } from "node:url";
import * as lsp from "vscode-languageserver-protocol/node";
import { PROBE, judge, read } from "../src/interpreter";
import { Python, environment, run, torchperf } from "../src/python";

const ROOT = join(__dirname, "..", "..", "..", "..");
const COMMAND = process.env.TORCHPERF_PYTHON ?? "python3";
const HERE: Python = { command: COMMAND, bundled: "" };
const FIXTURE = join(ROOT, "fixtures", "issue82206_sharded_grad_scaler", "before.py");
const FOLDER = mkdtempSync(join(tmpdir(), "torchperf-"));
const SAFE_FIX = `import torch


def step(x: torch.Tensor) -> torch.Tensor:
    return x + torch.zeros(3).to(x.device)
`;
const COLD = `import torch


def load(x: torch.Tensor) -> list[float]:
    return x.tolist()
`;

const STARTED: ChildProcess[] = [];

after(() => {
  // A test that failed has left its server.
  STARTED.forEach((one) => one.kill());
  rmSync(FOLDER, { recursive: true });
});

/** A client of one server, with the diagnostics as they are published. */
class Client {
  readonly messages: string[] = [];
  private readonly waiting = new Map<string, (found: lsp.Diagnostic[]) => void>();
  private constructor(
    readonly connection: lsp.MessageConnection,
    private readonly process: ChildProcess,
  ) {
    connection.onNotification(lsp.PublishDiagnosticsNotification.type, ({ uri, version, diagnostics }) =>
      this.waiting.get(`${uri} ${version}`)?.(diagnostics),
    );
    connection.onNotification(lsp.ShowMessageNotification.type, ({ message }) => {
      this.messages.push(message);
    });
  }

  static async start(python: Python, settings: object): Promise<Client> {
    const env = environment(python, process.env);
    const server = spawn(python.command, torchperf("server"), { cwd: FOLDER, env, stdio: ["pipe", "pipe", "inherit"] });
    STARTED.push(server);
    const reader = new lsp.StreamMessageReader(server.stdout);
    const client = new Client(lsp.createMessageConnection(reader, new lsp.StreamMessageWriter(server.stdin)), server);
    client.connection.listen();
    await client.connection.sendRequest(lsp.InitializeRequest.type, {
      processId: process.pid,
      rootUri: String(pathToFileURL(FOLDER)),
      workspaceFolders: null,
      capabilities: { workspace: { workspaceEdit: { documentChanges: true } } },
      initializationOptions: { torchperf: settings },
    });
    await client.connection.sendNotification(lsp.InitializedNotification.type, {});
    return client;
  }

  /** Open a text, or give it another one; returns its findings. */
  async diagnose(uri: string, text: string, version: number): Promise<lsp.Diagnostic[]> {
    const published = new Promise<lsp.Diagnostic[]>((resolve) => this.waiting.set(`${uri} ${version}`, resolve));
    if (version === 1) {
      const textDocument = { uri, languageId: "python", version, text };
      await this.connection.sendNotification(lsp.DidOpenTextDocumentNotification.type, { textDocument });
    } else {
      const textDocument = { uri, version };
      await this.connection.sendNotification(lsp.DidChangeTextDocumentNotification.type, {
        textDocument,
        contentChanges: [{ text }],
      });
    }
    return published;
  }

  async actions(uri: string, only: string[]): Promise<lsp.CodeAction[]> {
    const range = lsp.Range.create(0, 0, 1000, 0);
    const context = { diagnostics: [], only };
    const params = { textDocument: { uri }, range, context };
    return (await this.connection.sendRequest(lsp.CodeActionRequest.type, params)) as lsp.CodeAction[];
  }

  async end(): Promise<number | null> {
    await this.connection.sendRequest(lsp.ShutdownRequest.type);
    const ended = new Promise<number | null>((resolve) => this.process.on("exit", resolve));
    await this.connection.sendNotification(lsp.ExitNotification.type);
    return ended;
  }
}

function uriOf(name: string): string {
  return String(pathToFileURL(join(FOLDER, name)));
}

function codes(found: lsp.Diagnostic[]): unknown[] {
  return found.map(({ code }) => code);
}

/** Return a text after edits of whole lines. */
function applied(text: string, action: lsp.CodeAction): string {
  const [change] = (action.edit?.documentChanges ?? []) as lsp.TextDocumentEdit[];
  const lines = text.split("\n");
  for (const edit of [...change.edits].reverse() as lsp.TextEdit[]) {
    const { start, end } = edit.range;
    assert.deepEqual([start.character, end.character], [0, 0]);
    lines.splice(start.line, end.line - start.line, ...edit.newText.replace(/\n$/, "").split("\n"));
  }
  return lines.join("\n");
}

test("a published problem is shown, and its lines are those that the fixture names", async () => {
  copyFileSync(FIXTURE, join(FOLDER, "before.py"));
  const text = readFileSync(FIXTURE, "utf-8");
  const client = await Client.start(HERE, {});
  const found = await client.diagnose(uriOf("before.py"), text, 1);
  const expected = text.split("\n").flatMap((line, number) => {
    const named = /#\s+(TPF\d+(?:, TPF\d+)*)$/.exec(line);
    return named ? named[1].split(", ").map((code) => `${number} ${code}`) : [];
  });
  assert.ok(expected.length > 0);
  assert.deepEqual(found.map(({ code, range }) => `${range.start.line} ${code}`).sort(), expected.sort());
  assert.equal(await client.end(), 0);
});

test("all safe fixes leave nothing to fix", async () => {
  const client = await Client.start(HERE, {});
  assert.deepEqual(codes(await client.diagnose(uriOf("a.py"), SAFE_FIX, 1)), ["TPF501"]);
  const [action] = await client.actions(uriOf("a.py"), ["source.fixAll.torchperf"]);
  const fixed = applied(SAFE_FIX, action);
  assert.match(fixed, /return x \+ torch\.zeros\(3, device=x\.device\)\n/);
  assert.deepEqual(await client.diagnose(uriOf("a.py"), fixed, 2), []);
  assert.equal(await client.end(), 0);
});

test("the extension's settings decide what is shown", async () => {
  const client = await Client.start(HERE, { scope: "loop" });
  assert.deepEqual(await client.diagnose(uriOf("a.py"), COLD, 1), []);
  await client.connection.sendNotification("workspace/didChangeConfiguration", {
    settings: { torchperf: { scope: "all" } },
  });
  assert.deepEqual(codes(await client.diagnose(uriOf("a.py"), `${COLD}\n`, 2)), ["TPF102"]);
  assert.deepEqual(client.messages, []);
  assert.equal(await client.end(), 0);
});

test("the commands that the extension runs", async () => {
  const page = await run(HERE, torchperf("explain", "TPF501"), FOLDER);
  assert.match(page.out, /^# .*\(TPF501\)\n/);
  const rules = await run(HERE, torchperf("rules", "--format", "json"), FOLDER);
  assert.ok((JSON.parse(rules.out) as { code: string }[]).some(({ code }) => code === "TPF501"));
  writeFileSync(join(FOLDER, "b.py"), SAFE_FIX);
  const why = await run(HERE, torchperf("why", `${join(FOLDER, "b.py")}:5`), FOLDER);
  assert.match(why.out, /TPF501/);
});

test("the bundled copy finds everything and offers no fixes", async () => {
  const folder = mkdtempSync(join(tmpdir(), "torchperf-bare-"));
  const { PYTHONPATH } = process.env;
  try {
    delete process.env.PYTHONPATH;
    const made = await run(HERE, ["-m", "venv", "--without-pip", folder]);
    assert.equal(made.status, 0, made.err);
    const command = process.platform === "win32" ? join(folder, "Scripts", "python.exe") : join(folder, "bin", "python");
    const verdict = judge(command, read(await run({ command, bundled: "" }, PROBE)));
    assert.ok(verdict.usable && verdict.bundled && !verdict.fixes);
    const client = await Client.start({ command, bundled: join(ROOT, "editors", "vscode", "bundled") }, {});
    assert.deepEqual(codes(await client.diagnose(uriOf("a.py"), SAFE_FIX, 1)), ["TPF501"]);
    assert.deepEqual(await client.actions(uriOf("a.py"), ["source.fixAll.torchperf"]), []);
    assert.equal(await client.end(), 0);
  } finally {
    process.env.PYTHONPATH = PYTHONPATH ?? "";
    rmSync(folder, { recursive: true });
  }
});
