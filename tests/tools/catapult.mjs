// node catapult.mjs TRACE.json[.gz] [--screenshot OUT.png]
//
// Opens TRACE in Catapult's viewer, the code of chrome://tracing (Debian's Chromium is built
// without it; the Perfetto UI ships a copy), in headless Chromium. The answer has the form that
// viewer.mjs describes, with two results: a row per thread, with what the viewer's model holds of it, and one per arrow.

import { answer, commandLine, serve, version, withPage } from "./viewer.mjs";

const { trace, options } = commandLine(["screenshot"]);
const base = await serve({ "/trace": trace });

await withPage({ width: 1600, height: 1000 }, async (page, errors) => {
  await page.goto(`${base}/${version}/assets/catapult_trace_viewer.html`, { waitUntil: "load" });
  await page.waitForFunction(() => document.querySelector("x-profiling-view")?.setActiveTrace);
  await page.evaluate(async () => {
    const data = await (await fetch("/trace")).arrayBuffer();
    const [first, second] = new Uint8Array(data, 0, 2);
    const isGzip = first === 0x1f && second === 0x8b;
    const view = document.querySelector("x-profiling-view");
    view.setActiveTrace("trace", isGzip ? data : new TextDecoder().decode(data));
  });
  const loaded = await page.waitForFunction(
    () => {
      if (document.querySelector("tr-ui-timeline-view")?.model) return "ok";
      // The title of a dialog, the cross that closes it, and what it says.
      return /\nError\n✕\n([^]*)/.exec(document.body.innerText)?.[1] ?? false;
    },
    { timeout: 120_000, polling: 100 },
  );
  const status = await loaded.jsonValue();
  if (status !== "ok") {
    answer({ status, errors, results: [] });
    return;
  }
  const { warnings, threads, arrows } = await page.evaluate(readModel);
  if (options.screenshot) await page.screenshot({ path: options.screenshot });
  answer({ status, errors: [...errors, ...warnings], results: [threads, arrows] });
});

/// Runs in the page.
function readModel() {
  const model = document.querySelector("tr-ui-timeline-view").model;
  const depth = (slice) => (slice.parentSlice ? 1 + depth(slice.parentSlice) : 1);
  const threads = model.getAllProcesses().flatMap((process) =>
    Object.values(process.threads).map((thread) => ({
      process: process.name ?? null,
      pid: process.pid,
      thread: thread.name ?? null,
      tid: thread.tid,
      slices: thread.sliceGroup.slices.length,
      async_slices: thread.asyncSliceGroup.slices.length,
      depth: thread.sliceGroup.slices.reduce(
        (deepest, slice) => Math.max(deepest, depth(slice)),
        0,
      ),
    })),
  );
  const ns = (milliseconds) => Math.round(milliseconds * 1e6);
  const arrows = model.flowEvents.map(({ startSlice: from, endSlice: to }) => ({
    from_slice: from.title,
    from_thread: from.parentContainer.name,
    to_slice: to.title,
    to_thread: to.parentContainer.name,
    // In nanoseconds since the first event.
    from_begin: ns(from.start),
    from_end: ns(from.end),
    time: ns(to.start),
  }));
  const warnings = model.importWarnings.map(({ type, message }) => `${type}: ${message}`);
  return { warnings, threads, arrows };
}
