// node rotate.cjs FILE MAX_BYTES ENTRIES_PER_SECOND COUNT [PAD_BYTES [leave]]
//
// Logs COUNT numbered tool calls and responses, in turn, as the server does: through winston's File transport, three
// files, the newest under the plain name. 0 entries a second means as fast as it can. PAD_BYTES makes each call longer.
// With `leave` it exits as soon as it has logged, without waiting for the file, as the server does. Prints, as JSON, how many
// entries it logged and for which session.
'use strict';

const fs = require('node:fs');
const winston = require('winston');

const [, , filename, ...words] = process.argv;
const [maxsize, entriesPerSecond, count, padBytes = 0] = words.slice(0, 4).map(Number);
const leave = words[4] === 'leave';

const file = new winston.transports.File({ filename, maxsize, maxFiles: 3, tailable: true });
file.setMaxListeners(0); // winston adds one a write while the file is slow
const { combine, timestamp, json } = winston.format;
const log = winston.createLogger({
  level: 'info',
  format: combine(timestamp(), json()),
  defaultMeta: { namespace: 'debug-mcp' },
  transports: [file],
});

const sessionId = `00000000-0000-4000-8000-${process.pid.toString().padStart(12, '0')}`;
const about = { tool: 'evaluate_expression', sessionId, sessionName: 'rotation' };
let logged = 0;

function logNext() {
  const seq = logged++;
  if (seq % 2 === 1) {
    log.info('tool:response', { ...about, seq, success: true });
    return;
  }
  const request = { sessionId, expression: `total + ${seq}` };
  if (padBytes) request.pad = '.'.repeat(padBytes);
  log.info('tool:call', { ...about, seq, request });
}

function finish() {
  process.stdout.write(JSON.stringify({ logged, sessionId }) + '\n', () => {
    if (leave) process.exit(0);
    exitWhenWritten(Date.now() + 5000);
  });
}

// Neither the transport's `finish` nor a drained stream says that a rotating file has it all: look there. What winston
// lost never comes, hence the deadline.
function exitWhenWritten(untilMs) {
  if (Date.now() > untilMs || new RegExp(`"seq":${logged - 1}[,}]`).test(newestFile())) process.exit(0);
  setTimeout(exitWhenWritten, 10, untilMs);
}

function newestFile() {
  try {
    return fs.readFileSync(filename, 'utf8');
  } catch (error) {
    if (error.code === 'ENOENT') return ''; // between two files of a rotation
    throw error;
  }
}

const startedMs = Date.now();

function work() {
  const due = entriesPerSecond ? ((Date.now() - startedMs) * entriesPerSecond) / 1000 : logged + 200;
  while (logged < Math.min(due, count)) logNext();
  if (logged >= count) finish();
  else if (entriesPerSecond) setTimeout(work, 5);
  else setImmediate(work);
}

work();
