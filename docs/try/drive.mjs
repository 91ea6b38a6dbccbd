// Drives the page in a browser as a reader would, and prints what it saw as JSON:
//   node drive.mjs ADDRESS BROWSER [SHOTS]
// SHOTS is a folder for screenshots.

import puppeteer from "puppeteer-core";
import { join } from "node:path";

const [address, executablePath, shots] = process.argv.slice(2);
const PATIENCE = 120_000; // milliseconds
const FINDING = ".try-findings details";
const OTHER = `import torch

def f(xs: list[torch.Tensor]):
    for x in xs:
        g(x.item())
`;
const WIDTHS = { wide: 1280, narrow: 390 };

const errors = [];
const requests = new Set();

// Resolves with the milliseconds from the navigation to the first finding.
async function open(page, place) {
  const began = performance.now();
  await page.goto(place, { waitUntil: "domcontentloaded" });
  await settled(page);
  return Math.round(performance.now() - began);
}

// Resolves once findings are shown, or once the page says that it can't lint.
async function settled(page, count) {
  await page.waitForFunction(
    (selector, wanted) => {
      const shown = document.querySelectorAll(selector).length;
      const status = document.querySelector(".try-status")?.textContent ?? "";
      return status.startsWith("Not linted") || (wanted === undefined ? shown > 0 : shown === wanted);
    },
    { timeout: PATIENCE },
    FINDING,
    count,
  );
}

async function newPage(browser) {
  const page = await browser.newPage();
  page.setDefaultTimeout(PATIENCE);
  page.on("pageerror", (error) => errors.push(String(error)));
  page.on("request", (request) => requests.add(request.url()));
  page.on("workercreated", (worker) => {
    worker.on("console", (line) => line.type() === "error" && errors.push(line.text()));
  });
  await page.setViewport({ width: WIDTHS.wide, height: 900 });
  return page;
}

const codes = (page) => page.$$eval(`${FINDING} strong`, (all) => all.map((one) => one.textContent));
const text = (page) =>
  page.$$eval(".cm-line", (all) => all.map((one) => one.textContent).join("\n"));
const told = (page) => page.$eval(`${FINDING}[open]`, (one) => one.innerText);
const rule = (page) => page.$eval(`${FINDING}[open] a`, (one) => one.href);

// Pasted, since the editor indents by itself what is typed.
async function paste(page, code) {
  await page.focus(".cm-content");
  await page.keyboard.down("Control");
  await page.keyboard.press("a");
  await page.keyboard.up("Control");
  await page.evaluate((pasted) => {
    const clipboardData = new DataTransfer();
    clipboardData.setData("text/plain", pasted);
    const event = new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true });
    document.querySelector(".cm-content").dispatchEvent(event);
  }, code);
}

async function shoot(page) {
  for (const [width, pixels] of Object.entries(WIDTHS)) {
    await page.setViewport({ width: pixels, height: 900 });
    for (const theme of ["light", "dark"]) {
      await page.evaluate((name) => {
        document.body.dataset.theme = name;
      }, theme);
      await page.screenshot({ path: join(shots, `${width}-${theme}.png`), fullPage: true });
    }
  }
}

// What the worker has loaded, by its own record: the page's events do not tell of it.
async function noteLoaded(page) {
  for (const worker of page.workers()) {
    const loaded = () => performance.getEntriesByType("resource").map((one) => one.name);
    for (const name of await worker.evaluate(loaded)) requests.add(name);
  }
}

const width = (page) => page.evaluate(() => document.documentElement.scrollWidth);

const browser = await puppeteer.launch({ executablePath, args: ["--no-sandbox"] });
try {
  const page = await newPage(browser);
  const cold = await open(page, address);
  const example = await codes(page);
  if (example.length) {
    await (await page.$$(`${FINDING} summary`))[1].click();
    await page.waitForSelector(`${FINDING}[data-told=yes]`);
  }
  const account = example.length ? await told(page) : "";
  const ruleOf = example.length ? await rule(page) : "";
  if (shots) await shoot(page);
  await page.setViewport({ width: WIDTHS.narrow, height: 900 });
  const narrow = await width(page);
  await paste(page, OTHER);
  await settled(page, 1);
  await page.select(".try-settings select", "all");
  await page.click(".try-copy");
  await page.waitForFunction(() => window.location.hash.startsWith("#code="));
  const link = page.url();
  await noteLoaded(page);
  await page.close();

  const other = await newPage(browser);
  const warm = await open(other, link);
  const restored = await text(other);
  const scope = await other.$eval(".try-settings select", (one) => one.value);
  await noteLoaded(other);
  const shared = { pasted: OTHER, restored, scope, codes: await codes(other) };
  const seen = { cold, warm, example, account, rule: ruleOf, narrow, link, shared, errors };
  console.log(JSON.stringify({ ...seen, requests: [...requests] }));
} finally {
  await browser.close();
}
