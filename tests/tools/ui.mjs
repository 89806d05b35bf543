// The Perfetto UI in a page of the browser.

const PATIENCE = 120_000;
const ANSWER = 5_000;
const IDLE = 30_000;
const POLL = 100;

/// Waits till the UI has a trace and shows it; returns "ok", or what it said when it refused the trace.
///
/// A question that is asked while one page takes the place of another fails, or is never answered: it is asked again. That
/// the UI is idle is waited for, but not for ever: where nothing is drawn, it never is.
export async function loadedTrace(page) {
  for (const end = Date.now() + PATIENCE; Date.now() < end; await sleep(POLL)) {
    const asked = page.evaluate(state).catch(() => undefined);
    const status = await Promise.race([asked, sleep(ANSWER)]);
    if (status === "ok") await Promise.race([idle(page), sleep(IDLE)]);
    if (status) return status;
  }
  throw new Error(`${page.url()} has shown no trace for ${PATIENCE / 1000} s`);
}

function idle(page) {
  return page.evaluate(() => window.waitForPerfettoIdle(500)).catch(() => undefined);
}

/// Runs in the page.
function state() {
  if (window.app?.trace) return "ok";
  return document.querySelector(".pf-modal-dialog, .modal-dialog")?.innerText;
}

function sleep(milliseconds) {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}

/// The rows that the UI's engine answers; a question that is never answered is asked once more.
export async function query(page, sql) {
  const lost = Symbol("lost");
  const asked = rows(page, sql);
  // Where the second one fails, the first is nobody's any more.
  asked.catch(() => undefined);
  const answer = await Promise.race([asked, sleep(IDLE).then(() => lost)]);
  return answer === lost ? rows(page, sql) : answer;
}

function rows(page, sql) {
  return page.evaluate(async (sql) => {
    const result = await window.app.trace.engine.query(sql);
    const columns = result.columns();
    const rows = [];
    for (const iterator = result.iter({}); iterator.valid(); iterator.next()) {
      const row = {};
      for (const column of columns) {
        const value = iterator.get(column);
        if (typeof value !== "bigint") row[column] = value;
        else row[column] = Number.isSafeInteger(Number(value)) ? Number(value) : value.toString();
      }
      rows.push(row);
    }
    return rows;
  }, sql);
}
