// node speedscope.mjs TRACE.json
//
// Opens TRACE in Speedscope, in headless Chromium. The answer has the form that viewer.mjs describes, with one result: a
// row per profile and frame, with its weights `total` and `self` in microseconds. What the importer writes on the page's
// console about frames that do not nest is among the errors.
//
// Speedscope shows what it imports and keeps it to itself: the importer is taken from the line that announces it.

import fs from "node:fs";
import http from "node:http";
import path from "node:path";
import { answer, commandLine, fail, withPage } from "./viewer.mjs";

const { trace } = commandLine();
const folder = path.join(process.env.OMPTRACE_TOOLS, "node_modules/speedscope/dist/release");
if (!fs.existsSync(folder)) fail(`no Speedscope in ${folder}`);

const ANNOUNCEMENT =
  /console\.log\("Importing as Trace Event Format profile"\),([\w$]+)\(([\w$]+)\)/;

function content(name) {
  const file = path.join(folder, path.basename(name === "/" ? "index.html" : name));
  if (!fs.existsSync(file)) return undefined;
  if (!/^speedscope-.*\.js$/.test(path.basename(file))) return fs.readFileSync(file);
  const script = fs.readFileSync(file, "utf8");
  const [line, importer, json] = ANNOUNCEMENT.exec(script) ?? fail("another Speedscope");
  return script.replace(line, `(globalThis.profile=${importer}(${json}))`);
}

const TYPES = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css" };

const server = http.createServer((request, response) => {
  const name = decodeURIComponent(request.url.split("?")[0]);
  const body = name === "/trace.json" ? fs.readFileSync(trace) : content(name);
  response.writeHead(body === undefined ? 404 : 200, {
    "Content-Type": TYPES[path.extname(name)] ?? (name === "/" ? "text/html" : "text/plain"),
  });
  response.end(body);
});
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
const base = `http://127.0.0.1:${server.address().port}`;

await withPage({ width: 1200, height: 800 }, async (page, errors) => {
  page.on("console", (message) => {
    // It ends a frame also where only the arguments of the two ends differ, and says so.
    const ends = / instead\.$/.test(message.text()) && !/Doing nothing/.test(message.text());
    if (/Tried to end|still open/.test(message.text()) && !ends) errors.push(message.text());
  });
  await page.goto(`${base}/#profileURL=${encodeURIComponent(`${base}/trace.json`)}`);
  await page.waitForFunction(() => globalThis.profile, { timeout: 120_000, polling: 100 });
  const frames = await page.evaluate(readProfiles);
  answer({ status: "ok", errors, results: [frames] });
});

/// Runs in the page.
function readProfiles() {
  const rows = [];
  for (const profile of globalThis.profile.profiles) {
    profile.forEachFrame((frame) => {
      rows.push({
        profile: profile.getName(),
        frame: frame.name,
        total: frame.getTotalWeight(),
        self: frame.getSelfWeight(),
      });
    });
  }
  return rows;
}
