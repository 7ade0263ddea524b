// What a server over HTTP may answer beside answers.
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { once } from 'node:events';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { connect, http } from 'fencelock-wasm';
import { answering, TOKEN } from '../rest.js';
import { onRedis } from './support/stores.js';

async function serving(t, answer) {
  const server = createServer(answer).listen(0, '127.0.0.1');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  await once(server, 'listening');
  return `http://127.0.0.1:${server.address().port}`;
}

/** It is refused, its reason or reply says so, and no secret does. */
const refused = (url, said, code = 'unavailable') =>
  assert.rejects(connect(http({ url, token: TOKEN })), (error) => {
    assert.equal(error.code, code);
    assert.match(error.fields.reason ?? error.fields.reply, said);
    assert.ok(!JSON.stringify([error.message, error.fields]).includes(TOKEN));
    return true;
  });

onRedis('a server over HTTP', (store) => {
  for (const [way, status] of [['pipeline', 301], ['pipeline', 302], ['pipeline', 307], ['pipeline', 308], ['subscribe', 307]]) {
    test(`that sends on with ${status} from \`${way}\` is not followed, and named`, async (t) => {
      let followed = 0;
      const elsewhere = await serving(t, (_, response) => (followed++, response.end('[]')));
      const rest = answering(store.url);
      t.after(rest.close);
      const url = await serving(t, (request, response) => {
        if (!request.url.startsWith(`/${way}`)) return rest.answer(request, response);
        response.writeHead(status, { location: `${elsewhere}/${TOKEN}?${TOKEN}` }).end('moved');
      });
      await refused(url, new RegExp(`^${status} sends on to ${elsewhere},`));
      assert.equal(followed, 0);
    });
  }

  test('that sends on without saying where is named all the same', async (t) => {
    await refused(await serving(t, (_, response) => response.writeHead(302).end()), /^302 sends on to another address,/);
  });

  test('that has too much to do is asked again', async (t) => {
    let busy = false;
    const rest = answering(store.url);
    t.after(rest.close);
    const url = await serving(t, (request, response) => {
      if (!busy) return rest.answer(request, response);
      busy = false;
      response.writeHead(429).end('{ "error": "Too many requests" }');
    });
    const client = await connect(http({ url, token: TOKEN }), { ttl: 20_000 });
    busy = true;
    const guard = await client.lock('a').acquire();
    assert.deepEqual([busy, guard.isHeld], [false, true]);
    await guard.release();
    await client.close();
    busy = true;
    await refused(url, /^429 Too many requests$/);
  });

  test('that repeats the token is not repeated', async (t) => {
    const echo = (status) => serving(t, (_, response) => response.writeHead(status).end(JSON.stringify({ error: `${TOKEN} is bad` })));
    await refused(await echo(401), /401  *is bad/, 'auth');
    await refused(await echo(500), /^500  *is bad$/);
  });

  test('that encodes its answers is asked not to, and not understood', async (t) => {
    const asked = [];
    const url = await serving(t, (request, response) => {
      asked.push(request.headers['accept-encoding']);
      response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync('[{ "result": "PONG" }]'));
    });
    await refused(url, /encoded as gzip/);
    assert.deepEqual(asked, ['identity']);
  });
});
