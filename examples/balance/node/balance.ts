// An account that eight workers deduct from at once: by a version, under a lock, and with neither. The same account as
// balance.rs, in TypeScript.
//
//   npm install && npm run deduct -- --how version          (or lock, or none)
//
// `--url` is the store of the version and of the lock, `--book` the SQLite file that the other two ways keep the account in. By
// default both lie in a folder of their own. balance.rs tells more, and deducts from the same account if both are given.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { open, type Asked } from './account.js';

/** It does not divide the balance, so in the end there is something left that covers no deduction. */
const AMOUNT = 3;

interface Tally {
  paid: number;
  refused: number;
}

/** One worker, a program of its own in real life: with its own connections. */
async function work(asked: Asked, times: number): Promise<Tally> {
  await using account = await open(asked);
  const tally = { paid: 0, refused: 0 };
  for (let time = 0; time < times; time++) {
    if (await account.deduct(AMOUNT)) tally.paid += AMOUNT;
    else tally.refused++;
  }
  return tally;
}

/** All the work, and whether the books add up after it. */
async function deduct(asked: Asked, workers: number, times: number): Promise<boolean> {
  const ours = await Promise.all(Array.from({ length: workers }, () => work(asked, times)));
  const total = (of: keyof Tally) => ours.reduce((sum, tally) => sum + tally[of], 0);
  await using account = await open(asked);
  const { opened, balance, paid } = await account.books();
  // Others may have deducted too: the books have what they were paid besides.
  const exact = balance >= 0 && paid + balance === opened && total('paid') <= paid;
  const verdict = exact ? 'exact' : 'not exact';
  console.log(`${asked.how}: paid out ${paid}, refused ${total('refused')}, left ${balance} of ${opened}, ${verdict}`);
  return exact;
}

async function main(folder: string): Promise<void> {
  const { values } = parseArgs({
    options: {
      how: { type: 'string', default: 'version' },
      url: { type: 'string', default: `sqlite:${join(folder, 'locks.db')}` },
      book: { type: 'string', default: join(folder, 'book.db') },
      balance: { type: 'string', default: '100' },
      workers: { type: 'string', default: '8' },
      times: { type: 'string', default: '10' },
    },
  });
  const { how, url, book } = values;
  const asked = { how, url, book, opened: Number(values.balance) };
  if (!(await deduct(asked, Number(values.workers), Number(values.times)))) process.exitCode = 1;
}

const folder = await mkdtemp(join(tmpdir(), 'fencelock-balance-'));
try {
  await main(folder);
} finally {
  await rm(folder, { recursive: true });
}
