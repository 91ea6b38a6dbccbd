// Drives the page in a browser as a reader would, and prints what it saw as JSON:
//   node drive.mjs ADDRESS BROWSER [SHOTS]
// SHOTS is a folder for screenshots.

import puppeteer from "puppeteer-core";
import { join } from "node:path";

const [address, executablePath, shots] = process.argv.slice(2);
const PATIENCE = 180_000; // milliseconds
const FINDING = ".try-findings details";
const SHARED = "import torch\n\ndef f(xs: list[torch.Tensor]):\n    for x in xs:\n        g(x.item())\n";
const WIDTHS = { wide: 1280, narrow: 390 };

const requested = [];
const errors = [];

async function open(browser, place = address) {
  const page = await browser.newPage();
  page.setDefaultTimeout(PATIENCE);
  page.on("pageerror", (error) => errors.push(String(error)));
  page.on("console", (line) => line.type() === "error" && errors.push(line.text()));
  const began = performance.now();
  await page.goto(place, { waitUntil: "commit" });
  await page.waitForSelector(FINDING);
  return { page, milliseconds: Math.round(performance.now() - began) };
}

// Requests of workers are seen at the level of the browser alone.
async function watch(browser) {
  const session = await browser.target().createCDPSession();
  await session.send("Target.setAutoAttach", { autoAttach: true, waitForDebuggerOnStart: false, flatten: true });
}

const codes = (page) => page.$$eval(`${FINDING} strong`, (all) => all.map((one) => one.textContent));
const text = (page) => page.$$eval(".cm-line", (all) => all.map((one) => one.textContent).join("\n"));

async function type(page, code) {
  await page.focus(".cm-content");
  await page.keyboard.down("Control");
  await page.keyboard.press("a");
  await page.keyboard.up("Control");
  // Pasted, since the editor indents by itself what is typed.
  await page.evaluate((pasted) => {
    const data = new DataTransfer();
    data.setData("text/plain", pasted);
    const event = new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true });
    document.querySelector(".cm-content").dispatchEvent(event);
  }, code);
  await page.waitForFunction(
    (wanted) => document.querySelectorAll(wanted).length === 1, {}, FINDING);
}

async function shoot(page) {
  for (const [width, pixels] of Object.entries(WIDTHS)) {
    for (const theme of ["light", "dark"]) {
      await page.setViewport({ width: pixels, height: 900 });
      await page.evaluate((name) => { document.body.dataset.theme = name; }, theme);
      await page.screenshot({ path: join(shots, `${width}-${theme}.png`), fullPage: true });
    }
  }
}

const browser = await puppeteer.launch({ executablePath, args: ["--no-sandbox"] });
try {
  const cold = await open(browser);
  const { page } = cold;
  const first = await codes(page);
  await page.click(`${FINDING}:not([open]) summary`);
  await page.waitForSelector(`${FINDING}[data-told=yes]`);
  console.log(JSON.stringify({ cold: cold.milliseconds, first, errors }));
} finally {
  await browser.close();
}
