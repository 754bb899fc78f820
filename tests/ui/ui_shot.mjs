// node ui_shot.mjs UI_ROOT CHROMIUM OPTIONS_JSON TRACE OUT.png
// Opens a trace in the Perfetto UI under UI_ROOT with headless Chromium, without a network, saves a picture and
// prints one JSON object that tells what the UI made of it. With a link among the options it opens that instead, and
// leaves all as it was opened. shot.py is the command for people and describes the
// options and the report.
//
// The browser is driven over --remote-debugging-pipe (file descriptors 3 and 4): no driver package is needed.

import {spawn} from 'node:child_process';
import {createReadStream, existsSync, mkdtempSync, rmSync, statSync, writeFileSync} from 'node:fs';
import http from 'node:http';
import os from 'node:os';
import path from 'node:path';

const [root, chromium, optionsJson, trace, out] = process.argv.slice(2);
const {width, height, collapse, pin, select, area, start, end, tall, timeout, link, hosts} = JSON.parse(optionsJson);
const deadline = Date.now() + timeout * 1000;

// ------------------------------------------------------------- static server

const TYPES = {
  '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.json': 'application/json',
  '.wasm': 'application/wasm', '.png': 'image/png', '.woff2': 'font/woff2',
};

/** Serves the UI, and the trace as /trace/<its name>. */
function serve(traceFile) {
  const server = http.createServer((req, res) => {
    const name = decodeURIComponent(req.url.split(/[?#]/)[0]).replace(/\/$/, '/index.html');
    const file = name.startsWith('/trace/') ? traceFile : path.join(root, path.normalize(name));
    const allowed = file === traceFile || file.startsWith(root + path.sep);
    if (!allowed || !existsSync(file) || !statSync(file).isFile()) {
      res.writeHead(404).end();
      return;
    }
    const type = TYPES[path.extname(file)] ?? 'application/octet-stream';
    res.writeHead(200, {'Content-Type': type, 'Cache-Control': 'no-store'});
    createReadStream(file).pipe(res);
  });
  return new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(server)));
}

// ------------------------------------------------------------------- browser

class Browser {
  #waiting = new Map();
  #lastId = 0;
  #sessionId;
  exceptions = []; // of the page, as text

  constructor(profile) {
    this.process = spawn(chromium, [
      '--headless', '--no-sandbox', '--disable-gpu', '--no-first-run', '--hide-scrollbars',
      '--disable-background-networking', '--disable-component-update', '--disable-sync', '--disable-dev-shm-usage',
      // Nothing but this machine: `hosts` maps names to addresses of servers here, which no certificate is for.
      `--host-resolver-rules=${Object.entries(hosts).map((pair) => `MAP ${pair.join(' ')}, `).join('')}` +
        'MAP * ~NOTFOUND, EXCLUDE 127.0.0.1', '--ignore-certificate-errors',
      // No second compilation of what runs once only: that would be a third of all the work.
      '--js-flags=--liftoff-only,--single-threaded',
      `--user-data-dir=${profile}`, '--remote-debugging-pipe', 'about:blank',
    ], {stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe']});
    this.closed = new Promise((resolve) => this.process.on('close', resolve));
    this.process.on('error', (err) => this.#fail(err));
    this.closed.then(() => this.#fail(new Error('the browser ended')));
    this.process.stdio[3].on('error', () => {});
    let rest = [];
    this.process.stdio[4].on('data', (data) => {
      let from = 0;
      for (let at; (at = data.indexOf(0, from)) >= 0; from = at + 1) {
        const message = JSON.parse(Buffer.concat([...rest, data.subarray(from, at)]).toString());
        rest = [];
        this.#receive(message);
      }
      if (from < data.length) rest.push(data.subarray(from));
    });
  }

  #fail(err) {
    for (const {reject} of this.#waiting.values()) reject(err);
    this.#waiting.clear();
  }

  #receive({id, result, error, method, params}) {
    if (method === 'Runtime.exceptionThrown') {
      const details = params.exceptionDetails;
      this.exceptions.push(details.exception?.description ?? details.text);
    }
    const {resolve, reject} = this.#waiting.get(id) ?? {};
    this.#waiting.delete(id);
    if (error) reject?.(new Error(error.message));
    else resolve?.(result);
  }

  send(method, params = {}) {
    const id = ++this.#lastId;
    const message = {id, method, params, sessionId: this.#sessionId};
    this.process.stdio[3].write(JSON.stringify(message) + '\0');
    return new Promise((resolve, reject) => this.#waiting.set(id, {resolve, reject}));
  }

  async openPage() {
    const {targetId} = await this.send('Target.createTarget', {url: 'about:blank'});
    const {sessionId} = await this.send('Target.attachToTarget', {targetId, flatten: true});
    this.#sessionId = sessionId;
    await this.send('Page.enable');
    await this.send('Runtime.enable');
    // The UI looks whether it rests in callbacks of idle time, which Chromium may never call if it has no more work.
    await this.send('Page.addScriptToEvaluateOnNewDocument', {source: `{
      const whenIdle = self.requestIdleCallback;
      self.requestIdleCallback = (callback, options) => whenIdle(callback, {timeout: 1000, ...options});
    }`});
  }

  /** The value of a JavaScript expression in the page (awaited). */
  async evaluate(expression) {
    const {result, exceptionDetails: ex} = await this.send('Runtime.evaluate', {
      expression, awaitPromise: true, returnByValue: true,
    });
    if (ex) throw new Error(ex.exception?.description ?? ex.text);
    return result.value;
  }

  /** Calls a function in the page with arguments that JSON can hold. */
  call(func, ...args) {
    return this.evaluate(`(${func})(...${JSON.stringify(args)})`);
  }

  /** Waits until the expression is true. */
  async until(expression, what) {
    while (!await this.evaluate(`!!(${expression})`)) {
      if (Date.now() > deadline) throw new Error(`no ${what} after ${timeout} s`);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }

  async close() {
    this.#sessionId = undefined;
    this.send('Browser.close').catch(() => {});
    const late = setTimeout(() => this.process.kill('SIGKILL'), 5000);
    await this.closed;
    clearTimeout(late);
  }
}

// -------------------------------------------- functions that run in the page

/* global self, document, getComputedStyle */

async function pageReport() {
  const trace = self.app.trace;
  const dialog = document.querySelector('.pf-modal-dialog')?.innerText.trim() ?? null;
  if (!trace) return {dialog};
  const errors = [];
  const result = await trace.engine.query(
    `select name, ifnull(idx, -1) as idx, severity, value from stats
     where severity in ('error', 'data_loss') and value > 0`);
  for (const row = result.iter({}); row.valid(); row.next()) {
    errors.push(Object.fromEntries(result.columns().map((column) => [column, String(row.get(column))])));
  }
  const tree = (node) => node.children.map((child) => ({name: child.name, children: tree(child)}));
  const {start, end, importErrors} = trace.traceInfo;
  const details = document.querySelector('.pf-split-panel__drawer')?.innerText ?? '';
  return {dialog, importErrors, errors, details, start: String(start), end: String(end), tracks: tree(trace.workspace)};
}

/** The visible part of the timeline, and the rows in the window: how much of that part their slices take. */
async function pageScreen() {
  const trace = self.app.trace;
  const {start, end} = trace.timeline.visibleWindow.toTimeSpan();
  const trackIds = (node) => [
    ...(trace.tracks.getTrack(node.uri ?? '')?.tags?.trackIds ?? []), ...node.children.flatMap(trackIds)];
  const slices = async (ids) => {
    const result = await trace.engine.query(
      `select max(ts, ${start}) as a, min(iif(dur < 0, ${end}, ts + dur), ${end}) as b from slice
       where track_id in (${ids.join()}) and a < b order by a`);
    const found = [];
    for (const row = result.iter({}); row.valid(); row.next()) found.push([BigInt(row.get('a')), BigInt(row.get('b'))]);
    return found;
  };
  const share = (duration) => Number(duration) / Number(end - start);
  const rows = [];
  for (const element of document.querySelectorAll('.pf-track')) {
    const {top, bottom} = element.getBoundingClientRect();
    const node = trace.workspace.flatTracks.find(({id}) => id === element.id);
    if (!node || top < 0 || bottom > innerHeight) continue;
    const names = [];
    for (let at = node; at?.name; at = at.parent) names.unshift(at.name);
    const found = await slices(trackIds(node));
    let covered = 0n;
    let until = start;
    for (const [a, b] of found) {
      if (b > until) covered += b - (a > until ? a : until);
      if (b > until) until = b;
    }
    rows.push({
      name: names.join(' / '), slices: found.length, covered: share(covered),
      spanned: found.length ? share(until - found[0][0]) : 0,
    });
  }
  return {window: [String(start), String(end)], rows};
}

/** Expands all groups but those with a name in `collapse`, and pins the tracks with a name in `pin`. */
function arrangeTracks(collapse, pin) {
  for (const node of self.app.trace.workspace.flatTracks) {
    if (collapse.includes(node.name)) node.collapse();
    else node.expand();
    if (pin.includes(node.name)) node.pin();
  }
}

/** Shows a part of the timeline; the times are nanoseconds after its start. */
function showSpan(start, end) {
  const {traceInfo, timeline} = self.app.trace;
  timeline.setViewportTime(traceInfo.start + BigInt(start), traceInfo.start + BigInt(end));
}

async function selectSlice(name) {
  const trace = self.app.trace;
  const literal = `'${name.replaceAll("'", "''")}'`;
  const result = await trace.engine.query(`select id from slice where name = ${literal} order by ts limit 1`);
  const row = result.iter({});
  if (!row.valid()) throw new Error(`no slice is named ${name}`);
  trace.selection.selectSqlEvent('slice', Number(row.get('id')), {scrollToSelection: true});
}

/** Selects the shown part of the timeline on the tracks with a name in `names`. */
function selectArea(names) {
  const {workspace, timeline, selection} = self.app.trace;
  const trackUris = workspace.flatTracks.filter((node) => names.includes(node.name) && node.uri).map((node) => node.uri);
  if (!trackUris.length) throw new Error(`no track is named ${names.join(' or ')}`);
  const {start, end} = timeline.visibleWindow.toTimeSpan();
  selection.selectArea({start, end, trackUris});
}

/** How many pixels of the tracks are below the lower edge of the window. */
function hiddenHeight() {
  return Math.max(0, ...[...document.querySelectorAll('main *')]
    .filter((e) => /auto|scroll/.test(getComputedStyle(e).overflowY) && !e.closest('.pf-sidebar'))
    .map((e) => e.scrollHeight - e.clientHeight));
}

/** Where the last row ends, if no drawer is open below. */
function usedHeight() {
  const drawer = document.querySelector('.pf-split-panel__drawer, .pf-drawer')?.clientHeight ?? 0;
  const bottoms = [...document.querySelectorAll('.pf-track')].map((row) => row.getBoundingClientRect().bottom);
  return drawer > 60 || !bottoms.length ? innerHeight : Math.min(innerHeight, Math.ceil(Math.max(...bottoms)) + 12);
}

// ---------------------------------------------------------------------- main

const DIALOG = `document.querySelector('.pf-modal-dialog')`;

const setHeight = (browser, h) => browser.send('Emulation.setDeviceMetricsOverride',
  {width, height: h, deviceScaleFactor: 1, mobile: false});

/** Waits until the UI rests: it gives up after a minute itself, but a busy machine may need more. */
async function idle(browser) {
  while (!await browser.evaluate(`self.waitForPerfettoIdle().then(() => true, () => false)`)) {
    if (Date.now() > deadline) throw new Error(`no rest of the UI after ${timeout} s`);
  }
}

async function load(browser, origin) {
  const url = encodeURIComponent(`${origin}/trace/${encodeURIComponent(path.basename(trace))}`);
  await setHeight(browser, height);
  await browser.send('Page.navigate', {url: link ?? `${origin}/?testing=1#!/?hideSidebar=true&url=${url}`});
  await browser.until(`self.app && self.waitForPerfettoIdle`, 'UI');
  await browser.evaluate(`localStorage.setItem('dismissedPanningHint', 'true')`);
  await browser.until(`${DIALOG} || (self.app.trace && !self.app.isLoadingTrace)`, 'trace');
}

async function arrange(browser) {
  await idle(browser);
  if (link === null) await browser.call(arrangeTracks, collapse, pin);
  if (select !== null) await browser.call(selectSlice, select);
  await idle(browser);
  if (end !== null) await browser.call(showSpan, String(start), String(end));
  if (area.length) {
    await idle(browser);
    await browser.call(selectArea, area);
    await idle(browser);
  }
  const wanted = tall ? Math.min(height + await browser.call(hiddenHeight), 16000) : height;
  // Texts drawn before their font was there are in another one.
  await browser.evaluate(`document.fonts.ready.then(() => true)`);
  // The UI may rest with tracks that still say "Loading...": a change of size makes it draw what it has by now.
  for (const step of [wanted + 1, wanted]) {
    await setHeight(browser, step);
    await idle(browser);
  }
}

/** Saves the window; as WebP without the blank part below the last row, in the best quality that has at most 30 kB. */
async function takePicture(browser) {
  const save = async (options) => {
    const {data} = await browser.send('Page.captureScreenshot', options);
    writeFileSync(out, Buffer.from(data, 'base64'));
    return data.length * 3 / 4;
  };
  if (!out.endsWith('.webp')) return save({format: 'png'});
  const clip = {x: 0, y: 0, width, height: await browser.call(usedHeight), scale: 1};
  for (const quality of [90, 75, 60, 45, 30, 15]) {
    if (await save({format: 'webp', quality, clip}) <= 30_000) return;
  }
}

const server = await serve(path.resolve(trace));
const profile = mkdtempSync(path.join(os.tmpdir(), 'ui_shot.'));
const browser = new Browser(profile);
let report = {};
let failure = null;
try {
  await browser.openPage();
  await load(browser, `http://127.0.0.1:${server.address().port}`);
  // With a dialog up the page does not count as idle: just let it be drawn.
  if (await browser.evaluate(`!!${DIALOG}`)) await new Promise((resolve) => setTimeout(resolve, 500));
  else await arrange(browser);
  report = await browser.call(pageReport);
  if (report.tracks) Object.assign(report, await browser.call(pageScreen));
  await takePicture(browser);
} catch (err) {
  failure = String(err.message ?? err);
} finally {
  await browser.close();
  server.close();
  server.closeAllConnections();
  rmSync(profile, {recursive: true, force: true, maxRetries: 5, retryDelay: 200});
}
console.log(JSON.stringify({failure, exceptions: browser.exceptions, ...report}));
