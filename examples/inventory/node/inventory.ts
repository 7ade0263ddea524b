// The last lamps of a shop, sold by eight clerks at once: with no lock, under a lock, and by one script on the server. The
// same shop as inventory.rs, in TypeScript.
//
//   npm install && npm run sell -- redis://127.0.0.1 etcd://127.0.0.1
//
// The first URL is the shop's, a Redis server. The second is the store of the locks, by default the same.
//
// Selling is looking at the stock, taking a moment (a price, a payment), and writing it down. Whoever else looks in that
// moment sells the same lamp again. The lock keeps the others out for as long as a sale takes, whatever is in it.
import { setTimeout as rest } from 'node:timers/promises';
import { connect, type Client } from 'fencelock';
import { Redis } from 'ioredis';

const LAMPS = 50;
const CUSTOMERS = 80;
const CLERKS = 8;
/** The time a sale takes between reading the stock and writing it, in milliseconds. */
const MOMENT = 2;

const STOCK = 'fencelock-example:node-lamps:stock';
const SOLD = 'fencelock-example:node-lamps:sold';

/** The whole deduction in one step of the server. */
const DEDUCT = `
local stock = tonumber(redis.call('GET', KEYS[1]))
if stock < 1 then return 0 end
redis.call('DECR', KEYS[1])
redis.call('INCR', KEYS[2])
return 1`;

type Way = 'no lock' | 'lock' | 'script';

async function lookAndWrite(shop: Redis): Promise<void> {
  const stock = Number(await shop.get(STOCK));
  if (stock < 1) return;
  await rest(MOMENT);
  await shop.set(STOCK, stock - 1);
  await shop.incr(SOLD);
}

async function sell(way: Way, locks: Client, shop: Redis): Promise<void> {
  switch (way) {
    case 'no lock':
      return lookAndWrite(shop);
    case 'lock':
      return locks.lock('fencelock-example:node-lamps').using(() => lookAndWrite(shop));
    case 'script':
      await shop.eval(DEDUCT, 2, STOCK, SOLD);
  }
}

/** One clerk: a program of its own in a real shop, with its own connection. */
async function clerk(way: Way, url: string, shop: Redis): Promise<void> {
  await using locks = await connect(url);
  for (let customer = 0; customer < CUSTOMERS / CLERKS; customer++) await sell(way, locks, shop);
}

async function day(way: Way, url: string, shop: Redis): Promise<number> {
  await shop.mset(STOCK, LAMPS, SOLD, 0);
  await Promise.all(Array.from({ length: CLERKS }, () => clerk(way, url, shop)));
  const sold = Number(await shop.get(SOLD));
  await shop.del(STOCK, SOLD);
  return sold;
}

async function main(url: string, store: string): Promise<void> {
  const shop = new Redis(url);
  console.log(`${LAMPS} lamps, ${CUSTOMERS} customers, ${CLERKS} clerks`);
  for (const way of ['no lock', 'lock', 'script'] as const) {
    const begin = performance.now();
    const sold = await day(way, store, shop);
    const [over, took] = [Math.max(sold - LAMPS, 0), Math.round(performance.now() - begin)];
    console.log(`${way.padEnd(8)} sold ${String(sold).padStart(3)}, oversold ${String(over).padStart(3)}, ${took} ms`);
  }
  shop.disconnect();
}

const url = process.argv[2] ?? 'redis://127.0.0.1';
void main(url, process.argv[3] ?? url);
