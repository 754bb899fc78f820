// Runs Perfetto's trace processor in Node, without a browser.
//
// The Perfetto UI contains the trace processor as WebAssembly and keeps it in a web worker: engine_bundle.js
// reads the .wasm file with a synchronous XMLHttpRequest and then exchanges bytes over a MessagePort. Here the
// bundle runs in a function scope that offers just the worker globals it looks for, and the port is an ordinary
// object. The wasm code is synchronous, so a request and all its replies happen inside one port.onmessage().
//
// The bytes are messages of perfetto/protos/perfetto/trace_processor/trace_processor.proto
// (TraceProcessorRpcStream of TraceProcessorRpc).

import {closeSync, openSync, readFileSync, readSync} from 'node:fs';
import path from 'node:path';

// ------------------------------------------------------------------ protobuf

function varint(value) {
  const out = [];
  let rest = value;
  for (; rest > 127; rest = Math.floor(rest / 128)) out.push((rest % 128) | 128);
  out.push(rest);
  return Buffer.from(out);
}

/** A length-delimited field. */
export function bytesField(id, bytes) {
  return Buffer.concat([varint(id * 8 + 2), varint(bytes.length), bytes]);
}

/** [field number, value] pairs of a message: numbers (exact below 2^53) and byte strings. */
function* fields(message) {
  let pos = 0;
  const number = () => {
    let value = 0;
    for (let scale = 1; ; scale *= 128) {
      const byte = message[pos++];
      value += (byte & 127) * scale;
      if (byte < 128) return value;
    }
  };
  while (pos < message.length) {
    const tag = number();
    const id = Math.floor(tag / 8);
    const wireType = tag % 8;
    if (wireType === 0) yield [id, number()];
    else if (wireType === 1) pos += 8;
    else if (wireType === 5) pos += 4;
    else if (wireType === 2) {
      const size = number();
      pos += size;
      yield [id, message.subarray(pos - size, pos)];
    } else throw new Error(`unexpected wire type ${wireType}`);
  }
}

/** The text of a field of a message, or undefined. */
export function stringField(message, id) {
  for (const [field, value] of fields(message)) {
    if (field === id) return value.toString('utf8');
  }
  return undefined;
}

// -------------------------------------------------------------------- engine

/** What is used of TraceProcessorRpc: [method number, field of its argument]. */
const METHODS = {append: [1, 101], finalize: [2, 0], query: [3, 103], status: [10, 0]};

const modules = new Map(); // wasm file -> WebAssembly.Module, compiled once for all engines
const chunk = Buffer.allocUnsafe(8 << 20); // what is read of a file

/** One trace processor. It holds one trace; the next trace needs a new engine. */
export class Engine {
  #replies = [];
  #port = {postMessage: (data) => this.#replies.push(Buffer.from(data))};

  /** Resolves to an engine that takes requests. `uiDir` is the folder of engine_bundle.js. */
  static async start(uiDir) {
    const engine = new Engine();
    engine.#runBundle(uiDir);
    // The bundle ends its set-up in promise callbacks, all before this timer.
    await new Promise((resolve) => setTimeout(resolve, 0));
    engine.version = stringField(engine.call('status'), 2);
    return engine;
  }

  #runBundle(uiDir) {
    const worker = {location: {href: 'http://localhost/engine_bundle.js'}};
    let wasmFile;
    class XMLHttpRequest {
      open(_method, name) {
        wasmFile = path.join(uiDir, path.basename(name));
      }
      send() {
        this.status = 200;
        this.response = new Uint8Array([0]); // stands for the file: see Module below
      }
    }
    const wasm = Object.create(WebAssembly, {
      Module: {
        value: function(bytes) {
          if (bytes.length !== 1) return new WebAssembly.Module(bytes); // the bundle's feature tests
          if (!modules.has(wasmFile)) modules.set(wasmFile, new WebAssembly.Module(readFileSync(wasmFile)));
          return modules.get(wasmFile);
        },
      },
    });
    const quiet = () => {};
    const globals = {
      self: worker,
      WorkerGlobalScope: function() {},
      XMLHttpRequest,
      WebAssembly: wasm,
      console: {log: quiet, warn: quiet, error: quiet, info: quiet, debug: quiet},
      process: undefined, // the bundle must not notice that this is Node
      document: undefined,
      window: undefined,
    };
    const bundle = readFileSync(path.join(uiDir, 'engine_bundle.js'), 'utf8');
    new Function(...Object.keys(globals), bundle)(...Object.values(globals));
    worker.onmessage({data: this.#port});
  }

  /** Calls one method; gives back the bytes of its result message. */
  call(method, argument = Buffer.alloc(0)) {
    const [number, argumentField] = METHODS[method];
    const parts = [Buffer.concat([varint(2 * 8), varint(number)])];
    if (argumentField) parts.push(bytesField(argumentField, argument));
    this.#replies = [];
    this.#port.onmessage({data: new Uint8Array(bytesField(1, Buffer.concat(parts)))});
    const results = [];
    for (const [, message] of fields(Buffer.concat(this.#replies))) {
      for (const [field, value] of fields(message)) {
        if (field === 5) throw new Error(value.toString('utf8'));
        if (field === 4) throw new Error(`the trace processor does not know method ${method}`);
        if (field > 200) results.push(value);
      }
    }
    return Buffer.concat(results); // a query has several replies; concatenating protobuf merges them
  }

  /** Loads a whole trace file; throws the error that the UI would show. */
  loadFile(file) {
    const fd = openSync(file, 'r');
    try {
      for (let n; (n = readSync(fd, chunk, 0, chunk.length)) > 0;) {
        const error = stringField(this.call('append', chunk.subarray(0, n)), 2);
        if (error) throw new Error(error);
      }
    } finally {
      closeSync(fd);
    }
    const error = stringField(this.call('finalize'), 1);
    if (error) throw new Error(error);
  }
}
