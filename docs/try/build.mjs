// Bundles the page, and packs the Python files compiled for the Python that Pyodide is:
//   node build.mjs FOLDER
// Expects the unpacked wheels in python/ and the first code to show in example.py (see build.py).

import { build } from "esbuild";
import { loadPyodide } from "pyodide";
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";

const folder = process.argv[2];
const RUNTIME = ["pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json"];

const INSTALLED = /^node_modules\/((?:@[^/]+\/)?[^/]+)\//;

// Compiled files stand in place of their sources: one to write for each module, none to compile. The
// worker reads this format of archives, whose names are not split over several headers.
const PACK = `
import compileall, os, py_compile, shutil, tarfile
mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
shutil.copytree("/in", "/out")
assert compileall.compile_dir("/out", quiet=1, legacy=True, invalidation_mode=mode, stripdir="/out")
for place, _, names in os.walk("/out"):
    for name in names:
        if name.endswith(".py"):
            os.remove(os.path.join(place, name))
with tarfile.open("/packages.tar.gz", "w:gz", format=tarfile.USTAR_FORMAT) as archive:
    archive.add("/out", "")
`;

async function bundle() {
  const { metafile } = await build({
    entryPoints: { page: "src/page.ts", worker: "src/worker.ts" },
    outdir: folder,
    bundle: true,
    format: "esm",
    minify: true,
    target: "es2022",
    define: { EXAMPLE: JSON.stringify(readFileSync("example.py", "utf8")) },
    logLevel: "warning",
    metafile: true,
  });
  const bundled = Object.keys(metafile.inputs).map((path) => INSTALLED.exec(path)?.[1]);
  writeFileSync(join(folder, "licenses.txt"), licenses(new Set(bundled.filter(Boolean))));
}

// The licences of the packages in the bundle; those of Python's packages are in packages.tar.gz.
function licenses(packages) {
  const texts = [...packages].sort().map((name) => {
    const place = join("node_modules", name);
    return `${name}\n\n${readFileSync(join(place, "LICENSE"), "utf8")}`;
  });
  return [...texts, "pyodide: Mozilla Public License 2.0, https://github.com/pyodide/pyodide\n"].join("\n\n");
}

function copyRuntime() {
  const runtime = join(folder, "pyodide");
  mkdirSync(runtime, { recursive: true });
  for (const name of RUNTIME) copyFileSync(join("node_modules", "pyodide", name), join(runtime, name));
}

async function pack() {
  const python = await loadPyodide();
  python.FS.mkdir("/in");
  python.FS.mount(python.FS.filesystems.NODEFS, { root: "python" }, "/in");
  python.runPython(PACK);
  writeFileSync(join(folder, "packages.tar.gz"), python.FS.readFile("/packages.tar.gz"));
}

// Lints the example by the settings of DEFAULTS (src/sharing.ts), asks why, and imports what only
// other texts need.
const WARM = `
import gc, importlib, json, linting, pkgutil
import flake8_torchperf.fixes, flake8_torchperf.torch_compile
example = ${JSON.stringify(readFileSync("example.py", "utf8"))}
settings = "hot", "inferred", False
found = json.loads(linting.findings(example, *settings))["findings"]
linting.why(example, found[0]["id"], *settings)
for package in (flake8_torchperf.fixes, flake8_torchperf.torch_compile):
    for one in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        importlib.import_module(one.name)
del example, found
gc.collect()
`;

// Python's memory once it has linted the example: a browser that loads it need neither start Python
// nor import the linter and read its tables, which takes longer than all else. Files are not part of
// it. Made apart from the packing, to be smaller. libcst's Rust parser has no build for browsers here,
// so its Python parser is chosen.
async function snapshot() {
  const env = { HOME: "/home/pyodide", LIBCST_PARSER_TYPE: "pure" };
  const python = await loadPyodide({ _makeSnapshot: true, env });
  const packages = python.runPython("import sysconfig; sysconfig.get_path('purelib')");
  const archive = readFileSync(join(folder, "packages.tar.gz"));
  python.unpackArchive(new Uint8Array(archive), "gztar", { extractDir: packages });
  python.runPython(WARM);
  writeFileSync(join(folder, "python.snapshot"), gzipSync(python.makeMemorySnapshot()));
}

await bundle();
copyRuntime();
await pack();
await snapshot();
