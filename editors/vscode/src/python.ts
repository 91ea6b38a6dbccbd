// How Python is started: the program, its arguments and its environment. Knows nothing about VS Code.

import { execFile } from "node:child_process";
import { delimiter } from "node:path";

/** A Python, and the folder of the bundled copy if that is to be used, else "". */
export interface Python {
  readonly command: string;
  readonly bundled: string;
}

export interface Output {
  readonly status: number;
  readonly out: string;
  readonly err: string;
}

// Milliseconds for a command such as `torchperf why`, which reads a whole package.
const PATIENCE = 60_000;
// Nothing may be imported from the current folder, which is the user's.
const SAFE = "import sys; sys.path[:] = [p for p in sys.path if p]; ";
const MAIN = `${SAFE}from flake8_torchperf.cli.main import main; sys.exit(main())`;

/** Return the arguments that make Python run a `torchperf` command. */
export function torchperf(...words: string[]): string[] {
  return ["-c", MAIN, ...words];
}

/** Return the arguments that make Python run a program of our own. */
export function program(text: string): string[] {
  return ["-c", SAFE + text];
}

/** Return the environment in which Python finds the bundled copy first, if that is to be used. */
export function environment(python: Python, own: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const path = [python.bundled, own.PYTHONPATH].filter(Boolean).join(delimiter);
  const made: NodeJS.ProcessEnv = { ...own, PYTHONIOENCODING: "utf-8" };
  if (path) {
    made.PYTHONPATH = path;
  }
  return made;
}

/** Run Python to its end; a Python that cannot be started has status -1 and says why. */
export function run(python: Python, words: string[], folder?: string): Promise<Output> {
  const options = {
    cwd: folder,
    env: environment(python, process.env),
    timeout: PATIENCE,
    maxBuffer: 16 * 1024 * 1024,
    windowsHide: true,
  };
  return new Promise((resolve) => {
    execFile(python.command, words, options, (error, out, err) => {
      const status = error === null ? 0 : typeof error.code === "number" ? error.code : -1;
      resolve({ status, out, err: status === -1 && !err ? (error?.message ?? "") : err });
    });
  });
}
