// node tp_server.mjs UI_DIR
// A trace processor behind HTTP on 127.0.0.1 until stdin closes. The first line of stdout is
// {"addr": "127.0.0.1:PORT", "version": ...}.
//
//   POST /load   body: the path of a trace; replaces the trace held. 200, or 422 with the reason of a refusal
//   POST /query  a QueryArgs message, as `trace_processor server http` takes it, so the official Python API
//                works: TraceProcessor(addr=...)

import http from 'node:http';
import {bytesField, Engine} from './tp_engine.mjs';

const uiDir = process.argv[2];
let engine = await Engine.start(uiDir);
let crash; // why the wasm code is dead, if it is

async function load(file) {
  engine = await Engine.start(uiDir); // a fresh memory for each trace
  crash = undefined;
  try {
    engine.loadFile(file);
    return [200, Buffer.alloc(0)];
  } catch (err) {
    crash = err.message;
    return [422, Buffer.from(crash)];
  }
}

function query(args) {
  try {
    if (crash) throw new Error(crash);
    return [200, engine.call('query', args)];
  } catch (err) {
    crash = err.message;
    return [200, bytesField(2, Buffer.from(crash))]; // QueryResult.error
  }
}

async function answer(url, body) {
  if (url === '/load') return load(body.toString('utf8'));
  if (url === '/query') return query(body);
  return [404, Buffer.alloc(0)];
}

let queue = Promise.resolve(); // one request at a time
const server = http.createServer((req, res) => {
  const parts = [];
  req.on('data', (part) => parts.push(part));
  req.on('end', () => {
    queue = queue.then(async () => {
      const [status, result] = await answer(req.url, Buffer.concat(parts));
      res.writeHead(status, {'Content-Length': result.length});
      res.end(result);
    }).catch((err) => {
      console.error(err);
      res.destroy();
    });
  });
});
server.keepAliveTimeout = 0; // a client may stay silent between two queries
server.requestTimeout = 0;
server.listen(0, '127.0.0.1', () => {
  const addr = `127.0.0.1:${server.address().port}`;
  process.stdout.write(JSON.stringify({addr, version: engine.version}) + '\n');
});

process.stdin.on('end', () => process.exit(0)).on('error', () => process.exit(0)).resume();
