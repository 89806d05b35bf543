// node trace_processor.mjs TRACE SQL...
//
// Reads TRACE with Perfetto's trace processor, compiled to WebAssembly, without a browser. See
// viewer.mjs for the answer.
//
// The engine is the UI's web worker: a script that talks to the page through a message port, in
// length-delimited protobuf messages (perfetto:
// protos/perfetto/trace_processor/trace_processor.proto). Here it runs in a context that has just
// what it asks of a worker, and this script is the page.

import fs from "node:fs";
import path from "node:path";
import { performance } from "node:perf_hooks";
import v8 from "node:v8";
import vm from "node:vm";
import {
  answer,
  commandLine,
  describeImportErrors,
  fail,
  IMPORT_ERRORS,
  ui,
  version,
} from "./viewer.mjs";

// Most of the time would go into optimizing an engine that answers a few queries: a quarter of it is left.
v8.setFlagsFromString("--liftoff-only");

process.on("unhandledRejection", (error) => fail(String(error?.stack ?? error)));

// --- protobuf ----------------------------------------------------------------------------------

const VARINT = 0;
const FIXED64 = 1;
const BYTES = 2;

function varint(value) {
  const bytes = [];
  let rest = BigInt(value);
  for (; rest >= 0x80n; rest >>= 7n) bytes.push(Number(rest & 0x7fn) | 0x80);
  bytes.push(Number(rest));
  return Buffer.from(bytes);
}

const numberField = (field, value) => Buffer.concat([varint(field * 8 + VARINT), varint(value)]);
const bytesField = (field, bytes) =>
  Buffer.concat([varint(field * 8 + BYTES), varint(bytes.length), bytes]);

/// The varint at `position`, and where it ends; undefined if it is not complete.
function readVarint(bytes, position) {
  let value = 0n;
  for (let shift = 0n; position < bytes.length; shift += 7n) {
    const byte = bytes[position++];
    value |= BigInt(byte & 0x7f) << shift;
    if (byte < 0x80) return { value, end: position };
  }
  return undefined;
}

function* varints(bytes) {
  for (let position = 0; position < bytes.length;) {
    const { value, end } = readVarint(bytes, position);
    yield value;
    position = end;
  }
}

/// The fields of a message: [number, value], the value a bigint or bytes.
function* fields(bytes) {
  for (let position = 0; position < bytes.length;) {
    const key = readVarint(bytes, position);
    const number = Number(key.value >> 3n);
    const type = Number(key.value & 7n);
    if (type === VARINT) {
      const { value, end } = readVarint(bytes, key.end);
      yield [number, value];
      position = end;
    } else if (type === BYTES) {
      const { value, end } = readVarint(bytes, key.end);
      position = end + Number(value);
      yield [number, bytes.subarray(end, position)];
    } else {
      position = key.end + (type === FIXED64 ? 8 : 4);
      yield [number, bytes.subarray(key.end, position)];
    }
  }
}

// --- engine ------------------------------------------------------------------------------------

// Numbers of TraceProcessorRpc's fields and methods.
const STREAM_MESSAGE = 1;
const RPC = {
  sequence: 1,
  request: 2,
  fatalError: 5,
  appendData: 101,
  queryArgs: 103,
  appendResult: 201,
  queryResult: 203,
  finalizeResult: 212,
};
const METHOD = { appendTraceData: 1, finalizeTraceData: 2, queryStreaming: 3 };

/// Starts the engine. Returns a function that sends one request (a method and further fields) and
/// returns the fields of all messages that answer it: the engine answers before it returns.
async function startEngine() {
  const folder = path.join(ui, version);
  const readFile = (url) => fs.readFileSync(path.join(folder, path.basename(String(url))));

  let receive = () => {};
  let send;
  const port = {
    set onmessage(handler) {
      send = handler;
    },
    postMessage: (data) => receive(Buffer.from(data)),
  };

  let started;
  const isUp = new Promise((resolve) => {
    started = resolve;
  });
  const worker = {
    console: { log() {}, info() {}, debug() {}, warn() {}, error() {} },
    performance,
    fetch: async (url) =>
      new Response(readFile(url), { headers: { "Content-Type": "application/wasm" } }),
    XMLHttpRequest: class {
      open(_method, url) {
        this.url = url;
      }
      send() {
        const file = readFile(this.url);
        this.response = file.buffer.slice(file.byteOffset, file.byteOffset + file.length);
        this.status = 200;
        this.onload?.();
      }
    },
    WorkerGlobalScope() {},
    importScripts() {},
    addEventListener() {},
    postMessage() {},
    location: { href: `http://localhost/${version}/engine_bundle.js` },
    navigator: { userAgent: "node" },
    crypto: globalThis.crypto,
    Response,
    TextDecoder,
    TextEncoder,
    URL,
    clearInterval,
    clearTimeout,
    queueMicrotask,
    setInterval,
    setTimeout,
  };
  worker.self = worker;
  vm.createContext(worker);
  watch(vm.runInContext("WebAssembly", worker), "trace_processor_rpc_init", started);
  vm.runInContext(readFile("engine_bundle.js").toString(), worker, {
    filename: "engine_bundle.js",
  });
  worker.onmessage({ data: port });
  await isUp;
  // The engine stores what its init function returned before it takes messages.
  await new Promise((resolve) => setImmediate(resolve));

  const BytesOfTheWorker = vm.runInContext("Uint8Array", worker);
  let sequence = 0;
  return (method, ...more) => {
    const answers = [];
    let unread = Buffer.alloc(0);
    receive = (data) => {
      unread = Buffer.concat([unread, data]);
      for (let message; (message = firstMessage(unread)); unread = unread.subarray(message.end)) {
        answers.push(...fields(message.content));
      }
    };
    const message = Buffer.concat([
      numberField(RPC.sequence, sequence++),
      numberField(RPC.request, method),
      ...more,
    ]);
    send({ data: new BytesOfTheWorker(bytesField(STREAM_MESSAGE, message)) });
    const fatal = answers.find(([number]) => number === RPC.fatalError);
    if (fatal) fail(`trace processor: ${fatal[1]}`);
    return answers;
  };
}

/// The first message of a stream of them; undefined if it is not complete.
function firstMessage(stream) {
  const length = stream.length > 1 ? readVarint(stream, 1) : undefined;
  const end = length && length.end + Number(length.value);
  return end <= stream.length ? { content: stream.subarray(length.end, end), end } : undefined;
}

/// Makes a context's own `WebAssembly` call `notice` after each call of the export of that name.
function watch(webAssembly, name, notice) {
  const { Instance } = webAssembly;
  webAssembly.Instance = function (...values) {
    const { exports } = new Instance(...values);
    if (!(name in exports)) return { exports };
    const watched = (...arguments_) => {
      const result = exports[name](...arguments_);
      notice();
      return result;
    };
    return { exports: { ...exports, [name]: watched } };
  };
}

// --- trace -------------------------------------------------------------------------------------

/// Reads the trace; returns "ok" or what the engine said against it.
function load(request, trace) {
  const file = fs.openSync(trace, "r");
  const piece = Buffer.alloc(1 << 25);
  for (let length; (length = fs.readSync(file, piece)) > 0;) {
    const answers = request(
      METHOD.appendTraceData,
      bytesField(RPC.appendData, piece.subarray(0, length)),
    );
    const error = errorIn(answers, RPC.appendResult, 2);
    if (error) return error;
  }
  return errorIn(request(METHOD.finalizeTraceData), RPC.finalizeResult, 1) ?? "ok";
}

/// The text in field `error` of the message `result` among the answers.
function errorIn(answers, result, error) {
  for (const [number, message] of answers) {
    if (number !== result) continue;
    const text = [...fields(message)].find(([field]) => field === error);
    if (text) return text[1].toString();
  }
  return undefined;
}

/// The rows that the engine answers. QueryResult: 1 column names, 2 error, 3 a batch of cells.
function query(request, sql) {
  const columns = [];
  const cells = [];
  for (const [number, result] of request(
    METHOD.queryStreaming,
    bytesField(RPC.queryArgs, bytesField(1, Buffer.from(sql))),
  )) {
    if (number !== RPC.queryResult) continue;
    for (const [field, value] of fields(result)) {
      if (field === 1) columns.push(value.toString());
      else if (field === 2) fail(`${sql}: ${value}`);
      else if (field === 3) cells.push(...cellsOf(value));
    }
  }
  const rows = [];
  for (let start = 0; start < cells.length; start += columns.length) {
    rows.push(Object.fromEntries(columns.map((column, index) => [column, cells[start + index]])));
  }
  return rows;
}

/// CellsBatch: 1 the cells' types, 2 varints, 3 doubles, 4 blobs, 5 strings, each ended by a NUL
/// byte.
function cellsOf(batch) {
  const values = { types: [], integers: [], doubles: [], blobs: [], strings: [] };
  for (const [field, value] of fields(batch)) {
    if (field === 1) values.types = [...value];
    else if (field === 2) values.integers = [...varints(value)].map(integer);
    else if (field === 3)
      for (let at = 0; at < value.length; at += 8) values.doubles.push(value.readDoubleLE(at));
    else if (field === 4) values.blobs.push(value.toString("hex"));
    else if (field === 5) values.strings = value.toString().split("\0");
  }
  // By the number of the type: 0 invalid, 1 null.
  const lists = [[], [], values.integers, values.doubles, values.strings, values.blobs];
  const next = lists.map((list) => list[Symbol.iterator]());
  return values.types.map((type) => next[type].next().value ?? null);
}

function integer(value) {
  const signed = BigInt.asIntN(64, value);
  return Number.isSafeInteger(Number(signed)) ? Number(signed) : signed.toString();
}

const { trace, queries } = commandLine();
const request = await startEngine();
const status = load(request, trace);
const importErrors = describeImportErrors(query(request, IMPORT_ERRORS));
const results = status === "ok" ? queries.map((sql) => query(request, sql)) : [];
answer({ status, errors: importErrors, results });
process.exit();
