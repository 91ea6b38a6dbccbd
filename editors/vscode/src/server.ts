// The language server's life: finding a Python, starting, stopping, passing on settings.

import * as vscode from "vscode";
import { LanguageClient, State } from "vscode-languageclient/node";
import { PROBE, Verdict, candidates, judge, read } from "./interpreter";
import { INTERPRETER, Settings, settingsOf } from "./settings";
import { Python, environment, run, torchperf } from "./python";
import { Status } from "./status";

const SECTION = "torchperf";
const PYTHON_EXTENSION = "ms-python.python";

/** The part of the Python extension's API that is used. */
interface PythonApi {
  readonly environments: {
    getActiveEnvironmentPath(resource?: vscode.Uri): { path: string };
    resolveEnvironment(one: { path: string }): Promise<{ executable: { uri?: vscode.Uri } } | undefined>;
    readonly onDidChangeActiveEnvironmentPath: vscode.Event<unknown>;
  };
}

export class Server implements vscode.Disposable {
  /** The Python in use; undefined until one was found. */
  python: Python | undefined;
  readonly log: vscode.LogOutputChannel = vscode.window.createOutputChannel(SECTION, { log: true });
  private readonly status = new Status();
  private readonly listening: vscode.Disposable[] = [];
  private client: LanguageClient | undefined;
  private followed = false;
  // Starts and stops follow one another.
  private turn: Promise<void> = Promise.resolve();

  constructor(private readonly context: vscode.ExtensionContext) {
    this.listening.push(
      vscode.workspace.onDidChangeConfiguration((event) => {
        if (event.affectsConfiguration(`${SECTION}.${INTERPRETER}`)) {
          void this.restart();
        } else if (event.affectsConfiguration(SECTION)) {
          this.sendSettings();
        }
      }),
    );
  }

  /** Start the server, or start it again. */
  restart(): Promise<void> {
    this.turn = this.turn.then(async () => {
      await this.stop();
      this.status.starting();
      try {
        await this.start();
      } catch (error) {
        this.fail(error instanceof Error ? error.message : String(error));
      }
    });
    return this.turn;
  }

  /** Return the settings of [tool.torchperf] that are set. */
  settings(): Settings {
    const declared: unknown = this.context.extension.packageJSON.contributes.configuration.properties;
    const set = vscode.workspace.getConfiguration(SECTION);
    return settingsOf(Object.keys(declared as object), (name) => set.get(name));
  }

  /** Let the server carry out one of its commands. */
  async request(command: string, words: unknown[]): Promise<void> {
    await this.client?.sendRequest("workspace/executeCommand", { command, arguments: words });
  }

  async dispose(): Promise<void> {
    this.listening.forEach((one) => one.dispose());
    await this.turn;
    await this.stop();
    this.status.dispose();
    this.log.dispose();
  }

  private async start(): Promise<void> {
    const found = await this.find();
    if (typeof found === "string") {
      this.fail(found);
      return;
    }
    const [python, verdict] = found;
    this.python = python;
    const client = new LanguageClient(
      SECTION,
      SECTION,
      {
        command: python.command,
        args: torchperf("server"),
        options: { env: environment(python, process.env), cwd: folder()?.fsPath },
      },
      {
        documentSelector: [
          { language: "python", scheme: "file" },
          { language: "python", scheme: "untitled" },
        ],
        outputChannel: this.log,
        initializationOptions: { [SECTION]: this.settings() },
      },
    );
    // The client starts a server that ended again, but not for ever.
    client.onDidChangeState(({ newState }) => {
      if (this.client !== client) {
        return;
      }
      if (newState === State.Running) {
        const version = client.initializeResult?.serverInfo?.version ?? "";
        const detail = [`flake8-torchperf ${version}`, python.command, verdict.note].filter(Boolean);
        this.log.info(detail.join("; "));
        this.status.ready(detail.join("\n\n"), verdict.fixes);
      } else if (newState === State.Stopped) {
        this.fail("the server ended; the log says why");
      }
    });
    this.client = client;
    await client.start();
  }

  private async stop(): Promise<void> {
    const client = this.client;
    this.client = undefined;
    this.python = undefined;
    if (client?.needsStop()) {
      await client.stop();
    }
  }

  private fail(reason: string): void {
    this.log.error(reason);
    this.status.failed(reason);
  }

  private sendSettings(): void {
    if (this.client?.isRunning()) {
      void this.client.sendNotification("workspace/didChangeConfiguration", {
        settings: { [SECTION]: this.settings() },
      });
    }
  }

  /** Return the Python to use, or why there is none. */
  private async find(): Promise<[Python, Verdict & { usable: true }] | string> {
    const here = folder();
    const setting = vscode.workspace.getConfiguration(SECTION).get<string | null>(INTERPRETER) ?? "";
    const active = setting ? "" : await this.active(here);
    const reasons: string[] = [];
    for (const command of candidates(setting, active, here?.fsPath ?? "")) {
      const probed = read(await run({ command, bundled: "" }, PROBE));
      const verdict = judge(command, probed);
      if (verdict.usable) {
        const bundled = verdict.bundled ? this.context.asAbsolutePath("bundled") : "";
        return [{ command, bundled }, verdict];
      }
      this.log.warn(verdict.reason);
      reasons.push(verdict.reason);
    }
    return reasons.join("\n\n");
  }

  /** Return the interpreter that the Python extension has chosen; "" without that extension. */
  private async active(here: vscode.Uri | undefined): Promise<string> {
    const extension = vscode.extensions.getExtension<PythonApi>(PYTHON_EXTENSION);
    if (extension === undefined) {
      return "";
    }
    try {
      const { environments } = await extension.activate();
      if (!this.followed) {
        this.followed = true;
        this.listening.push(environments.onDidChangeActiveEnvironmentPath(() => void this.restart()));
      }
      const chosen = environments.getActiveEnvironmentPath(here);
      return (await environments.resolveEnvironment(chosen))?.executable.uri?.fsPath ?? "";
    } catch (error) {
      this.log.warn(`${PYTHON_EXTENSION} does not say which interpreter it uses: ${String(error)}`);
      return "";
    }
  }
}

function folder(): vscode.Uri | undefined {
  return vscode.workspace.workspaceFolders?.[0]?.uri;
}
