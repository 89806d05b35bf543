// node report.mjs PAGE [--folder FOLDER]
//
// Opens the page that `omptrace report` wrote, in headless Chromium, as a reader does: looks, sorts, hovers, types, zooms, prints.
// Prints one JSON object with what was seen. Into FOLDER go top.png, flame.png, lanes.png, narrow.png, dark.png and page.pdf.

import fs from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { answer, commandLine, withPage } from "./viewer.mjs";

const { trace: file, options } = commandLine(["folder"]);
const picture = (name) => (options.folder ? path.join(options.folder, name) : undefined);

await withPage({ width: 1600, height: 1000 }, async (page, errors) => {
  const requests = [];
  page.on("request", (request) => requests.push(request.url()));
  page.on("console", (message) => {
    if (message.type() === "error") errors.push(`console: ${message.text()}`);
  });
  const url = pathToFileURL(file).href;
  // Without motion, elements are where they were measured.
  const still = { name: "prefers-reduced-motion", value: "reduce" };
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: "light" }, still]);
  await page.goto(url, { waitUntil: "load" });
  await page.waitForFunction(
    () =>
      document.documentElement.dataset.ready === "yes" ||
      document.getElementById("moment").textContent !== "",
    { timeout: 60_000 },
  );
  const seen = { errors };

  // Numbers.
  seen.headline = await text(page, "#headline");
  seen.numbers = await page.evaluate(() => {
    const value = (element) => Number(element.dataset.value);
    const rows = (selector, read) => [...document.querySelectorAll(selector)].map(read);
    return {
      tiles: Object.fromEntries(rows("#tiles b", (tile) => [tile.id, value(tile)])),
      tree: rows("#tree tbody tr", (row) => ({
        level: Number(row.className.slice(1)),
        name: row.cells[0].textContent,
        ns: value(row.cells[1]),
        left: row.querySelector(".at").getBoundingClientRect().left,
        width: row.querySelector(".at").getBoundingClientRect().width,
      })),
      efficiencies: Object.fromEntries(
        rows("#eff tr", (row) => [row.id.replace("eff-", ""), value(row)]),
      ),
      findings: rows("#findings .card", (card) => ({
        id: card.dataset.id,
        gain_ns: value(card.querySelector(".gain b")),
        commands: [...card.querySelectorAll("code.copy")].map((code) => code.textContent),
      })),
      tasks: rows("#grains figure", (figure) =>
        [...figure.querySelectorAll("td.n")].reduce((sum, cell) => sum + value(cell), 0),
      ),
      heat: rows("#processes-heat tr", (row) => ({
        process: row.cells[0].textContent,
        columns: row.cells.length - 1,
        useful_ns: [...row.cells].reduce((sum, cell) => sum + (value(cell) || 0), 0),
      })),
      regions: rows("#regions-table tbody tr", (row) =>
        [...row.cells].map((cell) => (cell.dataset.value ? value(cell) : cell.textContent)),
      ),
    };
  });
  seen.sources = await page.evaluate(() =>
    [...document.querySelectorAll("#source tr.hot")].map((row) => Number(row.cells[0].textContent)),
  );
  seen.scripts_of_names = await page.evaluate(() => globalThis.planted ?? null);

  // Whoever cannot see the page has names for all that can be used.
  const tree = await page.accessibility.snapshot({ interestingOnly: true });
  const nodes = [];
  const walk = (node) => {
    nodes.push(node);
    for (const child of node.children ?? []) walk(child);
  };
  walk(tree);
  const used = ["button", "link", "textbox", "searchbox", "application", "image", "img"];
  seen.nameless = nodes.filter(({ role, name }) => used.includes(role) && !name);
  seen.contrast = await page.evaluate(lowContrast);

  if (options.folder) {
    await page.setViewport({ width: 1200, height: 900 });
    await page.screenshot({ path: picture("top.png") });
    await page.setViewport({ width: 1600, height: 1000 });
  }

  // Sorting.
  const column = async (index) =>
    page.$$eval(
      "#regions-table tbody tr",
      (rows, index) => rows.map((row) => Number(row.cells[index].dataset.value)),
      index,
    );
  seen.sorted = [];
  for (let presses = 0; presses < 2; presses++) {
    // As from the keyboard.
    await page.focus("#regions-table thead th:nth-child(2) button");
    await page.keyboard.press("Enter");
    seen.sorted.push(await column(1));
  }

  // The flame graph: keys and the pointer.
  if (await page.$("#flame")) {
    const frames = () =>
      page.$$eval("#flame > :not([hidden])", (frames) =>
        frames.map((frame) => {
          const { x, y, width } = frame.getBoundingClientRect();
          const outer = frame.parentElement.getBoundingClientRect();
          const [left, top] = [x - outer.x, y - outer.y];
          const { ns } = frame.dataset;
          const level = Number(frame.getAttribute("aria-level"));
          return { name: frame.textContent, level, ns: Number(ns), left, top, width };
        }),
      );
    const press = async (key) => {
      await page.keyboard.press(key);
      return text(page, "#frame");
    };
    seen.flame = { frames: await frames(), items: nodes.filter(({ role }) => role === "treeitem").length };
    await page.$eval("#flame", (flame) => flame.scrollIntoView({ block: "center", behavior: "instant" }));
    await page.focus("#flame > [tabindex='0']");
    seen.flame.root = await text(page, "#frame");
    seen.flame.down = await press("ArrowDown");
    seen.flame.below = await press("ArrowDown");
    await press("Enter");
    seen.flame.zoomed = await frames();
    seen.flame.up = await press("ArrowUp");
    await press("0");
    seen.flame.again = await frames();
    await page.click("#flame > [aria-level='2']");
    seen.flame.clicked = await frames();
    await page.click("#flame-controls button");
    seen.flame.button = await frames();
    if (options.folder) await (await page.$("#functions")).screenshot({ path: picture("flame.png") });
  }

  // The timeline: pointer, keys, zoom.
  const isDrawn = await page.evaluate(() => !document.getElementById("lanes").hidden);
  if (isDrawn) {
    await page.$eval("#lanes", (lanes) => lanes.scrollIntoView({ block: "center", behavior: "instant" }));
    const box = await (await page.$("#lanes canvas")).boundingBox();
    const x = (share) => box.x + 150 + (box.width - 150) * share;
    await page.mouse.move(x(0.5), box.y + 10);
    seen.hover = await text(page, "#moment");
    await page.focus("#lanes");
    await page.keyboard.press("Home");
    seen.home = await text(page, "#moment");
    await page.keyboard.press("ArrowDown");
    seen.down = await text(page, "#moment");
    const [threads, levels] = await page.evaluate(() => {
      const { picture } = JSON.parse(document.getElementById("data").textContent);
      return [picture.rows.length, picture.levels.length];
    });
    seen.levels = [];
    for (let lane = 2; lane < threads + levels; lane++) {
      await page.keyboard.press("ArrowDown");
      if (lane >= threads) seen.levels.push(await text(page, "#moment"));
    }
    const view = () =>
      page.$eval("#lanes", ({ dataset }) => [Number(dataset.from), Number(dataset.to)]);
    seen.whole = await view();
    await page.keyboard.press("+");
    seen.zoomed = await view();
    seen.command = await text(page, "#window-command");
    await page.keyboard.press("0");
    seen.again = await view();
    await page.mouse.move(x(0.25), box.y + 10);
    await page.mouse.down();
    await page.mouse.move(x(0.5), box.y + 10, { steps: 4 });
    await page.mouse.up();
    seen.dragged = await view();
    await page.click('#controls [data-do="all"]');
    if (options.folder) await (await page.$("#time")).screenshot({ path: picture("lanes.png") });
    seen.colours = await page.evaluate(() => {
      const canvas = document.querySelector("#lanes canvas");
      const { data } = canvas.getContext("2d").getImageData(160, 0, canvas.width - 160, canvas.height);
      const counts = {};
      for (let at = 0; at < data.length; at += 4) {
        const hex = [0, 1, 2].map((part) => data[at + part].toString(16).padStart(2, "0"));
        counts[`#${hex.join("")}`] = (counts[`#${hex.join("")}`] ?? 0) + 1;
      }
      return counts;
    });
  }

  // Widths, and dark.
  seen.widths = {};
  for (const width of [1600, 360]) {
    await page.setViewport({ width, height: 900 });
    await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 50))));
    seen.widths[width] = await page.evaluate(() => document.documentElement.scrollWidth);
  }
  if (options.folder) await page.screenshot({ path: picture("narrow.png") });
  await page.setViewport({ width: 1280, height: 900 });
  const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  seen.light = await ground();
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: "dark" }, still]);
  seen.dark = await ground();
  seen.dark_contrast = await page.evaluate(lowContrast);
  if (options.folder) {
    await page.evaluate(() => scrollTo({ top: 0, behavior: "instant" }));
    await page.screenshot({ path: picture("dark.png") });
  }

  const pdf = Buffer.from(await page.pdf({ format: "A4", printBackground: true }));
  if (options.folder) fs.writeFileSync(picture("page.pdf"), pdf);
  seen.pdf = pdf.subarray(0, 5).toString("latin1");
  seen.requests = requests.filter((other) => other !== url && !other.startsWith("blob:"));
  answer(seen);
});

function text(page, selector) {
  return page.$eval(selector, (element) => element.textContent);
}

/// Runs in the page: texts whose contrast to their ground is below 4.5, as WCAG 2 counts.
function lowContrast() {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const parsed = (colour) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    const [red, green, blue, alpha] = canvas.getImageData(0, 0, 1, 1).data;
    return { rgb: [red, green, blue], alpha: alpha / 255 };
  };
  const luminance = (rgb) => {
    const [red, green, blue] = rgb.map((part) => {
      const share = part / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const groundOf = (element) => {
    const layers = [];
    for (let at = element; at; at = at.parentElement) {
      layers.push(parsed(getComputedStyle(at).backgroundColor));
    }
    return layers.reverse().reduce(
      (below, { rgb, alpha }) => below.map((part, index) => part * (1 - alpha) + rgb[index] * alpha),
      [255, 255, 255],
    );
  };
  const low = new Set();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    const isShown = element.checkVisibility() && !["SCRIPT", "STYLE"].includes(element.tagName);
    if (!isShown || walker.currentNode.textContent.trim() === "") continue;
    const { rgb } = parsed(getComputedStyle(element).color);
    const [one, other] = [luminance(rgb), luminance(groundOf(element))];
    const contrast = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    if (contrast < 4.5) low.add(`${element.tagName} ${element.className}: ${contrast.toFixed(2)}`);
  }
  return [...low].slice(0, 20);
}
