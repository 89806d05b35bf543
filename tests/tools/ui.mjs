// The Perfetto UI in a page of the browser.

/// Waits till the UI has a trace and shows it; returns "ok", or what it said when it refused the trace.
export async function loadedTrace(page) {
  const loaded = await page.waitForFunction(
    () => {
      if (window.app?.trace) return "ok";
      return document.querySelector(".pf-modal-dialog, .modal-dialog")?.innerText ?? false;
    },
    { timeout: 120_000, polling: 100 },
  );
  const status = await loaded.jsonValue();
  if (status === "ok") await page.evaluate(() => window.waitForPerfettoIdle(500));
  return status;
}

/// The rows that the UI's engine answers.
export function query(page, sql) {
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
