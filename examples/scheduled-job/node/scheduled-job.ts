// A node of a fleet that writes a report: of all nodes, one writes it in each period. The same as scheduled_job.rs, in
// TypeScript; their nodes are one fleet.
//
//   npm install && npm run take-part -- --name node-1 --period 10 --for 60          (from several terminals)
//
// `--url` is the store, by default a SQLite file in this folder. Each run appends a line to `--output`: its instant in
// milliseconds since 1970, its token, the node. `--work` is how long a run takes. All times are seconds.
import { appendFile } from 'node:fs/promises';
import { setTimeout as rest } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { connect, type Run } from 'fencelock';

const { values: asked } = parseArgs({
  options: {
    url: { type: 'string', default: 'sqlite:jobs.db' },
    name: { type: 'string', default: `node-${process.pid}` },
    period: { type: 'string', default: '10' },
    for: { type: 'string', default: '60' },
    work: { type: 'string', default: '0' },
    output: { type: 'string', default: 'runs.txt' },
  },
});
const [node, period] = [asked.name, Number(asked.period) * 1000];

/** The run: a line in the output, and what it takes besides. */
async function report(run: Run, signal: AbortSignal): Promise<void> {
  // In one write, so that lines of several nodes never mix.
  await appendFile(asked.output, `${run.instant} ${run.token} ${node}\n`);
  await rest(Number(asked.work) * 1000, null, { signal });
}

async function main(): Promise<void> {
  await using client = await connect(asked.url);
  // A run that has died counts as dead after `ttl`: well before the next one is due.
  const job = client.job('fencelock-example:report', period, { ttl: Math.min(30_000, period / 4), info: node });
  console.log(`${node} takes part`);

  const end = performance.now() + Number(asked.for) * 1000;
  let runs = 0;
  while (performance.now() < end) {
    try {
      // Null: another node runs it, or it was run in this period.
      const ran = await job.using(async (run, signal) => report(run, signal).then(() => true));
      if (ran) runs++;
    } catch (error) {
      // The run failed or was lost, or the store is away. The next one is due all the same.
      console.error(`${node}: ${error}`);
    }
    // The store's clock says when a run is due, so no node has to know: it only asks often enough.
    await rest(period / 10);
  }
  console.log(`${node} had ${runs} runs`);
}

void main();
