// What one turn asks for goes out as one request.
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { once } from 'node:events';
import { after, before, beforeEach, test } from 'node:test';
import { connect, http, ioredis } from 'fencelock-wasm';
import { Redis } from 'ioredis';
import { Wire } from '../node_modules/fencelock-wasm/dist/wire.js';
import { answering, TOKEN } from '../rest.js';
import { atRest } from './support/rest.js';
import { fresh, onRedis } from './support/stores.js';

const AT_ONCE = 64;
/** So many characters go out together at most. */
const MOST = 256 * 1024;

const many = (each) => Promise.all(Array.from({ length: AT_ONCE }, (_, number) => each(number)));

onRedis('64 at once over HTTP', (store) => {
  let rest;
  let server;
  let client;
  let asked;
  /** The function that answers the next request. */
  let answer;
  const names = Array.from({ length: AT_ONCE }, () => fresh());
  before(async () => {
    rest = answering(store.url);
    server = createServer((request, response) => {
      if (request.url.endsWith('/pipeline')) asked++;
      return answer(request, response);
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    answer = rest.answer;
    client = await connect(http({ url: `http://127.0.0.1:${server.address().port}`, token: TOKEN }), { ttl: 20_000 });
  });
  beforeEach(() => ([asked, answer] = [0, rest.answer]));
  after(async () => {
    await client.close();
    server.closeAllConnections();
    server.close();
    rest.close();
  });

  test('are one request, and so are their releases', async () => {
    const guards = await many((number) => client.lock(names[number]).acquire());
    assert.equal(asked, 1);
    assert.deepEqual(new Set(await many((number) => guards[number].release())), new Set(['released']));
    assert.equal(asked, 2);
    await atRest(store, [client], names);
  });

  test('have each an error of its own', async () => {
    await store.redis.command('RPUSH', `fencelock:{${names[7]}}:held:${names[7]}`, 'a');
    const ends = await Promise.allSettled(names.map((name) => client.lock(name).tryAcquire()));
    assert.equal(asked, 1);
    assert.deepEqual(ends.map(({ reason }) => reason?.code).filter(Boolean), ['conflict']);
    assert.equal(ends[7].status, 'rejected');
    await Promise.all(ends.map(({ value }) => value?.release()));
    await store.redis.command('DEL', `fencelock:{${names[7]}}:held:${names[7]}`);
    await atRest(store, [client], names);
  });

  test('are sent whole to a server that has forgotten the scripts', async () => {
    await store.redis.command('SCRIPT', 'FLUSH');
    const guards = await many((number) => client.lock(names[number]).acquire());
    assert.ok(asked > 2 && asked < AT_ONCE / 2, `${asked} requests`);
    await many((number) => guards[number].release());
    await atRest(store, [client], names);
  });

  test('are all unknown if nobody knows what became of the request, and are undone', async () => {
    let lost = 0;
    answer = (request, response) => {
      answer = rest.answer;
      lost++;
      // It is carried out, and the answer goes nowhere.
      return rest.answer(request, Object.assign(Object.create(response), { end: () => response.destroy() }));
    };
    const began = performance.now();
    const guards = await many((number) => client.lock(names[number]).acquire());
    assert.equal(lost, 1);
    assert.ok(performance.now() - began < client.options.timeout, 'they were told, and did not wait for it');
    assert.deepEqual(guards.filter((guard) => !guard.isHeld), []);
    await many((number) => guards[number].release());
    await atRest(store, [client], names);
  });
});

onRedis('what is sent together', (store) => {
  const over = (send) => {
    const transport = ioredis(new Redis(store.url, { lazyConnect: true }));
    const like = (one) => ({ ...one, send: (commands) => send(one, commands), another: () => like(one.another()) });
    return like(transport);
  };

  test('is no longer than servers take, and in order', async () => {
    let sent = [];
    const client = await connect(over((one, commands) => (sent.push(commands), one.send(commands))), { ttl: 20_000 });
    const names = Array.from({ length: AT_ONCE }, () => fresh('x'.repeat(450)));
    sent = [];
    const info = Object.fromEntries(Array.from({ length: 15 }, (_, key) => [`key${key}`, 'x'.repeat(250)]));
    const guards = await many((number) => client.lock(names[number], { info }).acquire());
    const lengths = sent.map((commands) => JSON.stringify(commands).length);
    assert.ok(lengths.every((length) => length <= MOST + AT_ONCE), `${lengths}`);
    assert.equal(lengths.length, Math.ceil(lengths.reduce((sum, length) => sum + length) / MOST));
    assert.deepEqual(sent.flat().map((words) => names.findIndex((name) => words.some((word) => word.endsWith(name)))), names.map((_, number) => number));
    await many((number) => guards[number].release());
    await client.close();
  });

  test('is unknown if there are not as many ends as commands', async () => {
    let missing = 0;
    const short = over(async (one, commands) => (await one.send(commands)).slice(missing));
    const client = await connect(short, { ttl: 20_000 });
    missing = 1;
    const ends = await Promise.allSettled([0, 1].map(() => client.lock(fresh()).inspect()));
    assert.deepEqual(ends.map(({ reason }) => reason?.code), ['unavailable', 'unavailable']);
    missing = 0;
    await client.close();
    assert.deepEqual(await store.redis.leftovers(), []);
  });
});

test('what was asked for before a close goes out before it', async () => {
  const seen = [];
  const wire = new Wire({ name: '', send: async () => (seen.push('sent'), [{ result: 'PONG' }]), close: () => seen.push('closed') }, () => {}, () => {});
  const sent = wire.send('[["PING"]]');
  wire.close();
  assert.deepEqual(JSON.parse(await sent), [{ result: 'PONG' }]);
  assert.deepEqual(seen, ['sent', 'closed']);
});
