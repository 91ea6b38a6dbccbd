// Runs Python apart from the page, so that typing stays smooth: requests in, JSON out.

import type { loadPyodide as Load, PyodideAPI } from "pyodide";
import type { Reply, Request } from "./protocol";

interface Linting {
  findings(text: string, scope: string, confidence: string, preview: boolean): string;
  why(text: string, place: string, scope: string, confidence: string, preview: boolean): string;
}

const HERE = new URL("./", import.meta.url).href;
const PYTHON = `${HERE}pyodide/`;

const PAGE = 65_536; // bytes of WebAssembly's memory
// Of tar: the bytes of a block, and the type of a file.
const BLOCK = 512;
const FILE = "0";

async function load(name: string): Promise<Response> {
  const answer = await fetch(`${HERE}${name}`);
  if (!answer.ok) throw new Error(`${name}: ${answer.status} ${answer.statusText}`);
  return answer;
}

async function unzipped(name: string): Promise<Uint8Array> {
  const bytes = ((await load(name)).body as ReadableStream).pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(bytes).arrayBuffer());
}

// Lets Python's memory begin with a number of bytes: Pyodide writes a snapshot into it as it is, and
// by itself it begins with what a Python without packages needs.
function beginWith(bytes: number): void {
  const instantiate = WebAssembly.instantiateStreaming;
  WebAssembly.instantiateStreaming = async (...given) => {
    const made = await instantiate(...given);
    const { memory } = made.instance.exports;
    if (memory instanceof WebAssembly.Memory) {
      const missing = Math.ceil((bytes - memory.buffer.byteLength) / PAGE);
      if (missing > 0) memory.grow(missing);
    }
    return made;
  };
}

// The files of an archive in tar's format "ustar", by their paths. Python takes ten times as long.
function* filesOf(archive: Uint8Array): Generator<[string, Uint8Array]> {
  const text = new TextDecoder();
  const field = (from: number, length: number) =>
    text.decode(archive.subarray(from, from + length)).split("\0", 1)[0] as string;
  for (let at = 0; archive[at]; ) {
    const size = parseInt(field(at + 124, 12), 8);
    const [folder, name] = [field(at + 345, 155), field(at, 100)];
    const from = at + BLOCK;
    if (field(at + 156, 1) === FILE) {
      yield [folder ? `${folder}/${name}` : name, archive.subarray(from, from + size)];
    }
    at = from + Math.ceil(size / BLOCK) * BLOCK;
  }
}

function write(archive: Uint8Array, folder: string, python: PyodideAPI): void {
  const made = new Set<string>();
  for (const [path, bytes] of filesOf(archive)) {
    const place = `${folder}/${path}`;
    const above = place.slice(0, place.lastIndexOf("/"));
    if (!made.has(above)) python.FS.mkdirTree(above);
    made.add(above);
    python.FS.writeFile(place, bytes, { canOwn: true });
  }
}

async function start(): Promise<Linting> {
  const archive = unzipped("packages.tar.gz");
  const snapshot = await unzipped("python.snapshot");
  beginWith(snapshot.byteLength);
  const { loadPyodide } = (await import(`${PYTHON}pyodide.mjs`)) as { loadPyodide: typeof Load };
  const python = await loadPyodide({
    indexURL: PYTHON,
    _loadSnapshot: snapshot,
  });
  const packages = python.runPython("import sysconfig; sysconfig.get_path('purelib')") as string;
  write(await archive, packages, python);
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
