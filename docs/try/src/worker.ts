// Runs Python apart from the page, so that typing stays smooth: requests in, JSON out.

import type { loadPyodide as Load } from "pyodide";
import type { Reply, Request } from "./protocol";

interface Linting {
  findings(text: string, scope: string, confidence: string, preview: boolean): string;
  why(text: string, place: string, scope: string, confidence: string, preview: boolean): string;
}

const HERE = new URL("./", import.meta.url).href;
const PYTHON = `${HERE}pyodide/`;

async function load(name: string): Promise<Response> {
  const answer = await fetch(`${HERE}${name}`);
  if (!answer.ok) throw new Error(`${name}: ${answer.status} ${answer.statusText}`);
  return answer;
}

async function start(): Promise<Linting> {
  const archive = load("packages.zip");
  const snapshot = load("python.snapshot").then((answer) => {
    const memory = (answer.body as ReadableStream).pipeThrough(new DecompressionStream("gzip"));
    return new Response(memory).arrayBuffer();
  });
  const { loadPyodide } = (await import(`${PYTHON}pyodide.mjs`)) as { loadPyodide: typeof Load };
  const python = await loadPyodide({
    indexURL: PYTHON,
    _loadSnapshot: new Uint8Array(await snapshot),
  });
  const packages = python.runPython("import sysconfig; sysconfig.get_path('purelib')") as string;
  python.unpackArchive(await (await archive).arrayBuffer(), "zip", { extractDir: packages });
  return python.pyimport("linting") as Linting;
}

function answer(linting: Linting, request: Request): string {
  const { scope, confidence, preview } = request.settings;
  return request.kind === "lint"
    ? linting.findings(request.text, scope, confidence, preview)
    : linting.why(request.text, request.place, scope, confidence, preview);
}

// Python's last line names the error; the lines above it are the traceback, for the console.
function lastLine(error: unknown): string {
  console.error(error);
  const lines = String(error instanceof Error ? error.message : error).trim().split("\n");
  return lines[lines.length - 1] ?? "";
}

const linting = start();

self.onmessage = async ({ data }: MessageEvent<Request>) => {
  let reply: Reply;
  try {
    reply = { id: data.id, json: answer(await linting, data) };
  } catch (error) {
    reply = { id: data.id, failed: lastLine(error) };
  }
  self.postMessage(reply);
};
