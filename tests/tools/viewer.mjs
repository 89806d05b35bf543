// What the viewer scripts share: the command line, where tools lie, a web server, a browser, and
// the form of the answer.
//
// Each script prints one JSON object:
//
//   status   "ok", or what the viewer said when it refused the trace
//   errors   what the viewer noticed while it read the trace, and errors of its own pages; empty for a sound trace
//   results  one list of rows per query; a row is an object, its 64-bit integers beyond 2^53 are
//   strings
//
// The environment names the folder that `cargo xtask setup` fills (OMPTRACE_TOOLS) and the browser
// (OMPTRACE_CHROMIUM, default: chromium of the PATH).

import fs from "node:fs";
import http from "node:http";
import { createRequire } from "node:module";
import path from "node:path";

/// The query behind `errors`: what Perfetto's importer counted that is not mere information.
export const IMPORT_ERRORS =
  "select name, idx, severity, source, value from stats where value != 0 and severity != 'info'";

const tools =
  process.env.OMPTRACE_TOOLS ??
  fail("OMPTRACE_TOOLS must name the folder that `cargo xtask setup` fills");

/// The Perfetto UI: index.html lies here, everything else in a folder named by the version.
export const ui = path.join(tools, "perfetto-ui");
export const version =
  fs.readdirSync(ui).find((name) => /^v\d/.test(name)) ?? fail(`no Perfetto UI in ${ui}`);

export function fail(message) {
  process.stderr.write(`${message}\n`);
  process.exit(2);
}

/// Reads `TRACE [--option VALUE | --flag]... SQL...`; `options` names those that take a value.
export function commandLine(options = []) {
  const parsed = { trace: undefined, queries: [], options: {} };
  const words = process.argv.slice(2);
  while (words.length > 0) {
    const word = words.shift();
    if (word.startsWith("--")) {
      const name = word.slice(2);
      parsed.options[name] = options.includes(name) ? words.shift() : true;
    } else if (parsed.trace === undefined) {
      parsed.trace = path.resolve(word);
    } else {
      parsed.queries.push(word);
    }
  }
  return parsed.trace === undefined ? fail("no trace given") : parsed;
}

/// One line per row of IMPORT_ERRORS.
export function describeImportErrors(rows) {
  return rows.map(({ name, idx, severity, source, value }) => {
    const index = idx === null ? "" : `[${idx}]`;
    return `${name}${index} = ${value} (${severity}, ${source})`;
  });
}

export function answer(object) {
  // All of it, even where the process exits next. A pipe that Node has made non-blocking takes more when it has been read.
  const pause = new Int32Array(new SharedArrayBuffer(4));
  for (let rest = Buffer.from(`${JSON.stringify(object)}\n`); rest.length > 0;) {
    try {
      rest = rest.subarray(fs.writeSync(1, rest));
    } catch (error) {
      if (error.code !== "EAGAIN") throw error;
      Atomics.wait(pause, 0, 0, 1);
    }
  }
}

const CONTENT_TYPES = {
  ".css": "text/css",
  ".html": "text/html",
  ".js": "text/javascript",
  ".json": "application/json",
  ".png": "image/png",
  ".wasm": "application/wasm",
  ".woff2": "font/woff2",
};

/// Serves the UI's folder on 127.0.0.1; `special` maps further paths to files or, as objects, to
/// JSON. Returns the base URL.
export async function serve(special) {
  const server = http.createServer((request, response) => {
    const name = decodeURIComponent(request.url.split("?")[0]);
    const content = special[name] ?? path.join(ui, name === "/" ? "index.html" : name);
    if (typeof content === "object") {
      response.writeHead(200, { "Content-Type": "application/json" });
      response.end(JSON.stringify(content));
      return;
    }
    fs.stat(content, (error, status) => {
      if (error || !status.isFile()) {
        response.writeHead(404);
        response.end();
        return;
      }
      response.writeHead(200, {
        "Content-Type": CONTENT_TYPES[path.extname(content)] ?? "application/octet-stream",
        "Content-Length": status.size,
      });
      fs.createReadStream(content).pipe(response);
    });
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return `http://127.0.0.1:${server.address().port}`;
}

/// Opens a page in headless Chromium and hands it to `use`, with a list of the errors of its
/// scripts that grows meanwhile. Both are gone when `use` has ended. Ends the process with status 2
/// if `use` throws.
export async function withPage({ width, height }, use) {
  const puppeteer = createRequire(path.join(tools, "package.json"))("puppeteer-core");
  const browser = await puppeteer.launch({
    executablePath: process.env.OMPTRACE_CHROMIUM ?? "/usr/bin/chromium",
    headless: true,
    pipe: true,
    protocolTimeout: 180_000,
    // No sandbox: as root there is none. No network: the page must come from here alone.
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-dev-shm-usage",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
      "--no-first-run",
      `--window-size=${width},${height}`,
    ],
  });
  try {
    const page = await browser.newPage();
    const errors = [];
    page.on("pageerror", (error) => errors.push(`page: ${error}`));
    await page.setViewport({ width, height });
    await use(page, errors);
  } catch (error) {
    process.stderr.write(`${error?.stack ?? error}\n`);
    process.exitCode = 2;
  } finally {
    await browser.close();
  }
  process.exit();
}
