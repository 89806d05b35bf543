// node address.mjs ADDRESS [--screenshot OUT.png] SQL...
//
// Opens ADDRESS in headless Chromium, as a user would. If there is a button, clicks it, and goes on
// in the window that it opens. Waits till the Perfetto UI there has a trace, and asks the UI's own
// engine. See viewer.mjs for the answer; it has two more results:
//
//   a row of what is shown first: the names of the `pinned` tracks, by comma; `begin` and `end` of the time in sight, in
//   nanoseconds; the name of the slice that is `selected`
//   a row for each track that lies around others, in the order of display: `name`, and whether it is `collapsed`

import { loadedTrace, query } from "./ui.mjs";
import { answer, describeImportErrors, IMPORT_ERRORS, withPage } from "./viewer.mjs";

const [address, ...words] = process.argv.slice(2);
const [screenshot, queries] =
  words[0] === "--screenshot" ? [words[1], words.slice(2)] : [undefined, words];

await withPage({ width: 1600, height: 1000 }, async (page, errors) => {
  await page.goto(address, { waitUntil: "load" });
  const button = await page.$("button#open");
  const ui = button ? await windowOpenedBy(page, button) : page;

  const status = await loadedTrace(ui);
  if (status !== "ok") {
    answer({ status, errors, results: [] });
    return;
  }
  const importErrors = await query(ui, IMPORT_ERRORS);
  const results = [];
  for (const sql of queries) results.push(await query(ui, sql));
  results.push([await shown(ui)], await ui.evaluate(groups));
  if (screenshot) {
    // No more of it than a small program's tracks take.
    await ui.setViewport({ width: 1600, height: 640 });
    await ui.evaluate(() => window.waitForPerfettoIdle(500));
    await ui.screenshot({ path: screenshot });
  }
  answer({ status, errors: [...errors, ...describeImportErrors(importErrors)], results });
});

async function shown(ui) {
  const { slice, ...shown } = await ui.evaluate(view);
  const sql = `select name from slice where id = ${slice}`;
  const selected = slice === null ? null : (await query(ui, sql))[0].name;
  return { ...shown, selected };
}

/// Runs in the page.
function view() {
  const { workspace, timeline, selection } = window.app.trace;
  const time = timeline.visibleWindow.toTimeSpan();
  return {
    pinned: workspace.pinnedTracks.map(({ name }) => name).join(","),
    begin: Number(time.start),
    end: Number(time.end),
    slice: selection.selection.eventId ?? null,
  };
}

/// Runs in the page.
function groups() {
  const around = window.app.trace.workspace.flatTracksOrdered.filter((track) => track.hasChildren);
  return around.map(({ name, collapsed }) => ({ name, collapsed }));
}

/// The window, in front: in a hidden one the UI does not draw, and is never idle.
async function windowOpenedBy(page, button) {
  const opened = new Promise((resolve) => page.once("popup", resolve));
  await button.click();
  const window = await opened;
  await window.bringToFront();
  return window;
}
