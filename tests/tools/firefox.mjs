// node firefox.mjs TRACE.json
//
// Imports TRACE as the Firefox profiler does, by the code of its command line, which is that of its page. The answer has
// the form that viewer.mjs describes, with two results: a row per thread, `process`, `pid`, `thread`, `tid`, `is_main`, and the
// `weight` of its samples; and a row per marker, with the `thread`'s row number, `name`, `begin` and `duration` in
// nanoseconds (`duration` is null for instants) and the `detail`.
//
// The command line would start a daemon: here it does not run, and hands over what loads profiles.

import fs from "node:fs";
import Module from "node:module";
import path from "node:path";
import { answer, commandLine, fail } from "./viewer.mjs";

const { trace } = commandLine();
const file = path.join(
  process.env.OMPTRACE_TOOLS,
  "node_modules/@firefox-devtools/profiler-cli/dist/profiler-cli.js",
);
if (!fs.existsSync(file)) fail(`no Firefox profiler: ${file}`);

function replaceOnce(text, from, to) {
  if (text.split(from).length !== 2) fail("another version of the Firefox profiler");
  return text.replace(from, to);
}

const MAIN = /\b[\w$]+\(\)(?=\.catch\(e=>\{console\.error\(`Fatal error: )/;
let code = fs.readFileSync(file, "utf8").replace(/^#!.*/, "");
code = replaceOnce(code, "static async load(", "static{globalThis.Querier=this}static async load(");
code = replaceOnce(code, MAIN, "Promise.resolve()");
const bundle = new Module(file);
bundle.filename = file;
bundle._compile(code, file);

const errors = [];
for (const level of ["warn", "error"]) console[level] = (...words) => errors.push(words.join(" "));
// What it reports of its progress is none of ours.
console.log = () => {};

try {
  const profile = await globalThis.Querier.load(trace);
  const { threads } = await profile.threadList();
  const { profile: raw } = profile._store.getState().profileView;
  const rows = threads.map(({ threadIndex, threadHandle }) => {
    const { name, processName, pid, tid, isMainThread, samples } = raw.threads[threadIndex];
    const weight = samples.weight ? samples.weight.reduce((sum, each) => sum + each, 0) : samples.length;
    return { handle: threadHandle, process: processName, pid, thread: name, tid, is_main: isMainThread, weight };
  });
  const markers = [];
  for (const [thread, { handle }] of rows.entries()) {
    const { flatMarkers = [] } = await profile.threadMarkers(handle, {
      list: true,
      limit: Infinity,
    });
    for (const { name, start, duration, data } of flatMarkers) {
      const ns = (milliseconds) => Math.round(milliseconds * 1e6);
      markers.push({
        thread,
        name,
        begin: ns(start),
        duration: duration == null ? null : ns(duration),
        detail: data?.detail ?? null,
      });
    }
  }
  answer({ status: "ok", errors, results: [rows.map(({ handle, ...row }) => row), markers] });
} catch (error) {
  answer({ status: String(error), errors, results: [] });
}
process.exit();
