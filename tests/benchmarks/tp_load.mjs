// node tp_load.mjs UI_DIR TRACE
// Has Perfetto's trace processor load a trace, and ends: what that takes is what opening the trace takes.

import {Engine} from '../oracle/tp_engine.mjs';

const [uiDir, trace] = process.argv.slice(2);
const engine = await Engine.start(uiDir);
engine.loadFile(trace);
process.exit(0);
