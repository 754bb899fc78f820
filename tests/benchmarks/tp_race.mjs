// node tp_race.mjs UI_DIR TURNS TRACE...
// Has Perfetto's trace processor load each trace in each turn; prints JSON: per trace the CPU seconds of its turns.

import {Engine} from '../oracle/tp_engine.mjs';

const [uiDir, turns, ...traces] = process.argv.slice(2);

async function load(trace) {
  const engine = await Engine.start(uiDir);
  const before = process.cpuUsage();
  engine.loadFile(trace);
  const {user, system} = process.cpuUsage(before);
  return (user + system) / 1e6;
}

await load(traces[0]);  // compiles
const costs = traces.map(() => []);
for (let turn = 0; turn < Number(turns); turn++) {
  for (const [number, trace] of traces.entries()) costs[number].push(await load(trace));
}
console.log(JSON.stringify(costs));
