// The package in Chromium: two pages and this process count under one lock, over HTTP.
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';
import { answering, TOKEN } from '../rest.js';
import { fresh, onRedis } from './support/stores.js';
import { connect } from 'fencelock';

const DIST = new URL('../node_modules/fencelock-wasm/dist/', import.meta.url);
const PROGRAM = process.env.FENCELOCK_CHROMIUM ?? ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(existsSync);
const TYPES = { js: 'text/javascript', wasm: 'application/wasm', html: 'text/html' };
const TIMES = 20;

onRedis('in a browser', (store) => {
  let server;
  let rest;
  let browser;
  let count = 0;
  before(async () => {
    assert.ok(PROGRAM, 'no Chromium is there; install Debian\'s `chromium` or name one by FENCELOCK_CHROMIUM');
    rest = answering(store.url);
    server = createServer((request, response) => {
      const { pathname } = new URL(request.url, 'http://here');
      if (pathname.startsWith('/rest/')) return void rest.answer(request, response);
      if (pathname.startsWith('/away/')) {
        return void response.writeHead(307, { location: pathname.replace('away', 'rest') }).end();
      }
      if (pathname === '/count') {
        // Two steps, so that whoever does them without a lock loses some.
        if (request.method === 'GET') return void response.end(String(count));
        return void request.on('data', (data) => (count = Number(data))).on('end', () => response.end());
      }
      response.setHeader('content-type', TYPES[pathname.split('.').pop()] ?? TYPES.html);
      if (pathname === '/') return void response.end('<!doctype html><title>fencelock</title>');
      const file = fileURLToPath(new URL(`.${pathname}`, DIST));
      // Browsers ask for more than they are told of.
      if (existsSync(file)) response.end(readFileSync(file));
      else response.writeHead(404).end();
    });
    await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
    browser = await chromium.launch({ executablePath: PROGRAM, args: ['--no-sandbox', '--disable-dev-shm-usage'] });
  });
  after(async () => {
    await browser?.close();
    server.closeAllConnections();
    server.close();
    rest.close();
  });

  async function page(errors) {
    const page = await browser.newPage();
    page.on('pageerror', (error) => errors.push(String(error)));
    await page.goto(`http://127.0.0.1:${server.address().port}/`);
    return page;
  }

  test('a lock in memory is held, waited for and lost', async () => {
    const errors = [];
    const seen = await (await page(errors)).evaluate(async () => {
      const { connect, LockTimeoutError } = await import('/index.js');
      const client = await connect('memory:', { ttl: 5_000 });
      const first = await client.lock('a').acquire();
      const late = await client.lock('a').acquire({ wait: 50 }).catch((error) => error instanceof LockTimeoutError);
      const next = client.lock('a').acquire();
      await first.release();
      const second = await next;
      const short = await client.lock('b', { ttl: 1_000, renew: false }).acquire();
      const lost = await new Promise((resolve) => short.signal.addEventListener('abort', () => resolve(short.signal.reason.code)));
      const seen = { late, rose: second.token > first.token, held: second.isHeld, lost };
      await Promise.all([second, short].map((guard) => guard.release()));
      await client.close();
      // The end of its events is taken up at the next turn of the event loop.
      for (let turn = 0; turn < 100 && client.stats().done > 0; turn++) await new Promise((resolve) => setTimeout(resolve, 0));
      return { ...seen, load: client.stats() };
    });
    const load = { running: 0, done: 0, guards: 0, entries: 0, locks: 0 };
    assert.deepEqual([seen, errors], [{ late: true, rose: true, held: true, lost: 'lost', load }, []]);
  });

  test('a body is told of the loss, and left if it does not listen', async () => {
    const errors = [];
    const seen = await (await page(errors)).evaluate(async () => {
      const { connect } = await import('/index.js');
      const client = await connect('memory:', { ttl: 1_000, renew: false });
      const lock = client.lock('c');
      const outer = new AbortController();
      const aborted = (signal) => new Promise((resolve) => signal.addEventListener('abort', () => resolve(signal.reason.code)));
      const told = [];
      const listens = await lock
        .using(async (_, signal) => told.push(await aborted(signal)), { signal: outer.signal })
        .catch((error) => error.code);
      const deaf = await lock.using(() => new Promise(() => {})).catch((error) => error.code);
      await client.close();
      return { told, listens, deaf };
    });
    assert.deepEqual([seen, errors], [{ told: ['lost'], listens: 'lost', deaf: 'lost' }, []]);
  });

  test('no redirect is followed with the token', async () => {
    const errors = [];
    const refused = await (await page(errors)).evaluate(async (token) => {
      const { connect, http } = await import('/index.js');
      return connect(http({ url: `${location.origin}/away`, token })).catch(({ code, fields }) => [code, fields.reason]);
    }, TOKEN);
    assert.equal(refused[0], 'unavailable');
    assert.match(refused[1], /sends on to another address/);
    assert.deepEqual(errors, []);
  });

  test('two pages and a process count exactly', async () => {
    const errors = [];
    const [name, pages] = [fresh('count'), await Promise.all([page(errors), page(errors)])];
    const counting = pages.map((page) =>
      page.evaluate(
        async ({ name, times, token }) => {
          const { connect, http } = await import('/index.js');
          const client = await connect(http({ url: `${location.origin}/rest`, token }), { ttl: 10_000 });
          for (let time = 0; time < times; time++) {
            await client.lock(name).using(async () => {
              const seen = Number(await (await fetch('/count')).text());
              await fetch('/count', { method: 'POST', body: String(seen + 1) });
            });
          }
          await client.close();
        },
        { name, times: TIMES, token: TOKEN },
      ),
    );
    const client = await connect(store.url, { ttl: 10_000 });
    for (let time = 0; time < TIMES; time++) {
      await client.lock(name).using(async () => {
        const seen = count;
        await new Promise((resolve) => setTimeout(resolve, 1));
        count = seen + 1;
      });
    }
    await Promise.all(counting);
    await client.close();
    assert.deepEqual([count, errors], [3 * TIMES, []]);
    assert.deepEqual(await store.redis.leftovers(), []);
  });
});
