// node address.mjs ADDRESS SQL...
//
// Opens ADDRESS in headless Chromium, as a user would. If there is a button, clicks it, and goes on
// in the window that it opens. Waits till the Perfetto UI there has a trace, and asks the UI's own
// engine. See viewer.mjs for the answer; it has one more result, a row for each track that lies around others: `name`, and
// whether it is `collapsed`.

import { loadedTrace, query } from "./ui.mjs";
import { answer, describeImportErrors, IMPORT_ERRORS, withPage } from "./viewer.mjs";

const [address, ...queries] = process.argv.slice(2);

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
  results.push(await ui.evaluate(groups));
  answer({ status, errors: [...errors, ...describeImportErrors(importErrors)], results });
});

/// Runs in the page.
function groups() {
  const around = window.app.trace.workspace.flatTracks.filter((track) => track.hasChildren);
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
