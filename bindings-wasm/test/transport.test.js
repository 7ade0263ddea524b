import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { once } from 'node:events';
import { after, test } from 'node:test';
import { setImmediate as turn, setTimeout as sleep } from 'node:timers/promises';
import { connect, FencelockError, http, ioredis, nodeRedis } from 'fencelock-wasm';
import { Redis } from 'ioredis';
import { createClient } from 'redis';
import { serve } from '../rest.js';
import { fresh, onRedis } from './support/stores.js';

const served = [];
after(() => served.forEach((server) => server.close()));

async function serving(url) {
  const server = await serve(url);
  served.push(server);
  return server;
}

const deaf = (transport) => ({ ...transport, subscribe: undefined, another: () => deaf(transport.another()) });

/** Every way, as a function of the server's URL. */
const WAYS = {
  ioredis: (url) => ioredis(new Redis(url, { lazyConnect: true })),
  'node-redis': (url) => nodeRedis(createClient({ url })),
  http: async (url) => http(await serving(url)),
  'a transport that cannot listen': async (url) => deaf(http(await serving(url))),
};

for (const [way, over] of Object.entries(WAYS)) {
  onRedis(`over ${way}`, (store) => {
    test('a lock is handed over, and nothing is left', async () => {
      const [one, two] = await Promise.all([0, 1].map(async () => connect(await over(store.url), { ttl: 10_000 })));
      const name = fresh();
      const first = await one.lock(name).acquire();
      assert.equal(await two.lock(name).tryAcquire(), null);
      const next = two.lock(name).acquire({ wait: 5_000 });
      await sleep(50);
      await first.release();
      const second = await next;
      assert.ok(second.token > first.token);
      assert.deepEqual(await one.names(), [name]);
      await second.release();
      await Promise.all([one.close(), two.close()]);
      assert.deepEqual(await store.redis.leftovers(), []);
    });

    test('names and information in any script go there and back', async () => {
      const client = await connect(await over(store.url), { ttl: 10_000, info: 'Grüße, 世界 🔒' });
      const guard = await client.lock('schlüssel:🔑').acquire();
      const [holder] = (await client.lock('schlüssel:🔑').inspect()).holders;
      assert.equal(holder.info.info, 'Grüße, 世界 🔒');
      await guard.release();
      await client.close();
    });

    test('one transport serves clients one after the other, and beside each other', async () => {
      const transport = await over(store.url);
      const [one, two] = await Promise.all([connect(transport), connect(transport)]);
      await one.close();
      await (await two.lock(fresh()).acquire()).release();
      await two.close();
      const three = await connect(transport);
      await (await three.lock(fresh()).acquire()).release();
      await three.close();
    });

    test('a connection that broke is made anew, and tells of it', async () => {
      const [one, two] = await Promise.all([0, 1].map(async () => connect(await over(store.url), { ttl: 10_000 })));
      const name = fresh();
      const first = await one.lock(name).acquire();
      const next = two.lock(name).acquire({ wait: 8_000 });
      await sleep(50);
      for (const type of ['normal', 'pubsub']) await store.redis.command('CLIENT', 'KILL', 'TYPE', type);
      await sleep(200);
      // Whether the answer comes over the new connection in time is the client's affair; the lock is passed on.
      assert.notEqual(await first.release(), 'already_lost');
      await (await next).release();
      await Promise.all([one.close(), two.close()]);
      assert.deepEqual(await store.redis.leftovers(), []);
    });

    test('scripts that were flushed are sent again', async () => {
      const client = await connect(await over(store.url), { ttl: 10_000 });
      await store.redis.command('SCRIPT', 'FLUSH');
      await (await client.lock(fresh()).acquire()).release();
      await client.close();
    });

    test('what lies under the name is named and stays', async () => {
      const client = await connect(await over(store.url), { ttl: 10_000 });
      const key = 'fencelock:{letters}:held:letters';
      await store.redis.command('RPUSH', key, 'a');
      await assert.rejects(client.lock('letters').tryAcquire(), (error) => error instanceof FencelockError && error.code === 'conflict');
      assert.equal(await store.redis.command('LLEN', key), '1');
      await client.close();
      await store.redis.command('DEL', key);
    });
  });
}

onRedis('one round trip', (store) => {
  test('is what an acquire costs, and a release', async () => {
    let sent = [];
    const counted = (transport) => ({
      ...transport,
      send: (commands) => (sent.push(commands.length), transport.send(commands)),
      another: () => counted(transport.another()),
    });
    const client = await connect(counted(ioredis(new Redis(store.url, { lazyConnect: true }))), { ttl: 10_000 });
    sent = [];
    for (let pair = 0; pair < 5; pair++) await (await client.lock('a').acquire()).release();
    assert.deepEqual(sent, Array(10).fill(1));
    await client.close();
  });
});

test('a server that is not there is unavailable', async () => {
  const client = new Redis(1, { lazyConnect: true, retryStrategy: null });
  await assert.rejects(connect(ioredis(client)), { code: 'unavailable' });
  await assert.rejects(connect(http({ url: 'http://127.0.0.1:1', token: 'hunter2' })), (error) => {
    assert.equal(error.code, 'unavailable');
    assert.ok(!JSON.stringify([error.message, error.fields]).includes('hunter2'));
    return true;
  });
});

onRedis('a server with a password', (store) => {
  for (const [way, over] of Object.entries({ ioredis: WAYS.ioredis, 'node-redis': WAYS['node-redis'] })) {
    test(`refuses another one as \`auth\`, over ${way}`, async (t) => {
      await store.redis.command('CONFIG', 'SET', 'requirepass', 's3cr3t');
      const word = new URL(store.url);
      t.after(async () => {
        const admin = new Redis(store.url, { password: 's3cr3t' });
        await admin.config('SET', 'requirepass', '');
        await admin.quit();
      });
      word.password = 'hunter2';
      await assert.rejects(async () => connect(await over(word.href)), (error) => {
        assert.deepEqual([error.code, JSON.stringify([error.message, error.fields]).includes('hunter2')], ['auth', false]);
        return true;
      });
    });
  }
});

onRedis('over HTTP with another token', (store) => {
  test('is refused as `auth`', async () => {
    const { url } = await serving(store.url);
    await assert.rejects(connect(http({ url, token: 'hunter2' })), (error) => {
      assert.equal(error.code, 'auth');
      assert.ok(!JSON.stringify([error.message, error.fields]).includes('hunter2'));
      return true;
    });
  });
});

test('a server that says nothing is waited for no longer than `connectTimeout`', async (t) => {
  const silent = createServer(() => {}).listen(0, '127.0.0.1');
  t.after(() => {
    silent.closeAllConnections();
    silent.close();
  });
  await once(silent, 'listening');
  const began = performance.now();
  const { port } = silent.address();
  await assert.rejects(connect(http({ url: `http://127.0.0.1:${port}`, token: '' }), { connectTimeout: 200 }), { code: 'unavailable' });
  assert.ok(performance.now() - began < 5_000);
});

test('what there is no store for says what to write', async () => {
  await assert.rejects(connect('redis://127.0.0.1'), { code: 'unsupported', message: /ioredis\(client\)/ });
  await assert.rejects(connect('sqlite:locks.db'), { code: 'unsupported' });
  for (const url of ['etcd://127.0.0.1', 'etcds://127.0.0.1/p', 'zookeeper://a,b/p', 'postgres://me:hunter2@a/b', 'postgresql://a/b', 'mysql://me:hunter2@a/b', 'mariadb://a/b', 'redlock://a,b,c']) {
    await assert.rejects(connect(url), { code: 'unsupported', message: /no connections/, fields: { argument: 'store' } });
  }
  await assert.rejects(connect('nonsense:'), { code: 'invalid' });
  await assert.rejects(connect('memory:', { tll: 5 }), (error) => error.code === 'invalid' && error.fields.nearest === 'ttl');
  await assert.rejects(connect('memory:', { ttl: -1 }), { code: 'invalid', message: /must be a time, not below zero/ });
  // In JavaScript nobody keeps anybody from these; whoever else has a lock here keeps it.
  const client = await connect('memory:', { ttl: 10_000 });
  const guard = await client.lock('a').acquire();
  for (const store of [undefined, null, 5, {}, new URL('memory:'), new Redis({ lazyConnect: true })]) {
    await assert.rejects(connect(store), { code: 'invalid', message: /ioredis\(client\)/ });
  }
  const strange = { name: 5, send: () => Promise.reject(undefined), close: () => assert.fail('it cannot be closed') };
  await assert.rejects(connect(strange), { code: 'invalid' });
  await assert.rejects(connect({ ...strange, name: 'strange' }), { code: 'unavailable' });
  await (await connect('memory:', { app: 5 })).close();
  assert.ok(guard.isHeld);
  await guard.release();
  await client.close();
  const transport = http({ url: 'http://127.0.0.1:1', token: '' });
  await assert.rejects(connect(transport, { acks: 1 }), { code: 'unsupported' });
});

test('refusals are known by their words, whatever a bundler calls the classes', async () => {
  const minified = (words) => new (class a extends Error {})(words);
  const system = Object.assign(new Error('ECONNRESET'), { code: 'ECONNRESET' });
  const client = (error) => ({
    options: {},
    on() {},
    duplicate: () => client(error),
    connect: async () => {},
    pipeline: () => ({ exec: async () => [[error, null]] }),
    sendCommand: () => Promise.reject(error),
  });
  for (const over of [ioredis, nodeRedis]) {
    for (const words of ['NOSCRIPT No matching script.', 'WRONGTYPE Operation against a key', 'LOADING']) {
      assert.deepEqual(await over(client(minified(words))).send([['EVALSHA']]), [{ error: words }]);
    }
    for (const error of [minified('Connection is closed.'), minified('The client is closed'), system]) {
      await assert.rejects(over(client(error)).send([['EVALSHA']]), error);
    }
  }
});

test('a stream that stays silent is given up for another one', async (t) => {
  let streams = 0;
  const server = createServer((_, response) => {
    streams++;
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write('data: subscribe,letters,1\n\n');
  }).listen(0, '127.0.0.1');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  await once(server, 'listening');
  const transport = http({ url: `http://127.0.0.1:${server.address().port}`, token: '' });
  let missed;
  const gap = new Promise((resolve) => (missed = resolve));
  t.mock.timers.enable({ apis: ['setTimeout'] });
  await transport.subscribe('letters', () => {}, missed);
  for (let second = 0; second < 25; second++) {
    await turn();
    t.mock.timers.tick(1_000);
  }
  assert.equal(streams, 1, 'half a minute is not over');
  while (streams < 2) {
    await turn();
    t.mock.timers.tick(1_000);
  }
  await gap;
  transport.close();
});
