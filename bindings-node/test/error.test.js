import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { connect, FencelockError, LockLostError, LockTimeoutError } from 'fencelock';
import { fresh } from './support/stores.js';

describe('errors', () => {
  let client;
  before(async () => (client = await connect('memory:errors')));
  after(() => client.close());

  test('have a code, fields, and a class', async () => {
    const error = await client.lock('').acquire().catch((error) => error);
    assert.ok(error instanceof FencelockError && !(error instanceof LockLostError));
    assert.ok(LockTimeoutError.prototype instanceof FencelockError);
    assert.deepEqual([error.name, error.code, error.retryable, error.fields.argument], ['FencelockError', 'invalid', false, 'name']);
    assert.equal(Object.prototype.toString.call(error), '[object Error]');
  });

  test('have the codes of all languages', { skip: !process.env.FENCELOCK_SOURCES && 'it needs the sources' }, () => {
    const read = (path) => readFileSync(`${process.env.FENCELOCK_SOURCES}/../${path}`, 'utf8');
    const documented = read('docs/reference/errors.md').matchAll(/^\| `(\w+)` \|/gm);
    const [, union] = read('bindings-node/lib/error.ts').match(/export type Code =([^;]*);/);
    assert.deepEqual([...union.matchAll(/'(\w+)'/g)].map(([, code]) => code), [...documented].map(([, code]) => code));
  });

  test('of an unknown option name the nearest', async () => {
    const refused = { code: 'invalid', fields: { argument: 'option', nearest: 'max_hold' } };
    const lock = client.lock(fresh(), { maxHolds: 5 });
    const error = await lock.acquire().catch((error) => error);
    assert.deepEqual({ code: error.code, fields: { ...error.fields, name: undefined } }, { ...refused, fields: { ...refused.fields, name: undefined } });
    assert.match(error.message, /maxHolds/);
    await assert.rejects(client.lock(fresh()).acquire({ tll: 5 }), { code: 'invalid' });
    await assert.rejects(client.lock(fresh()).acquire({ ttl: 1 }), { code: 'invalid', message: /between 10 ms and 30 days/ });
    await assert.rejects(client.lock(fresh()).acquire({ ttl: -1 }), { code: 'invalid', message: /must be a time, not below zero/ });
    await assert.rejects(client.lock(fresh()).acquire({ connectTimeout: 100 }), { message: /belongs to the client/ });
  });

  test('of what is no text, number or list are errors too', async () => {
    for (const wrong of [undefined, null, 5, {}, 'a\ud800']) await assert.rejects(client.lock(wrong).acquire(), { code: 'invalid' });
    await assert.rejects(client.semaphore(fresh(), 1.5).acquire(), { code: 'invalid' });
    await assert.rejects(client.semaphore(fresh(), 0).acquire(), { code: 'invalid' });
    await assert.rejects(client.all([]).acquire(), { code: 'invalid' });
    await assert.rejects(client.job(fresh(), NaN).start(), { code: 'invalid' });
    const guard = await client.lock(fresh()).acquire();
    for (const wrong of [NaN, undefined, -1, Infinity]) await assert.rejects(guard.extend(wrong), { code: 'invalid' });
    await guard.release();
    await assert.rejects(connect(undefined), { code: 'invalid' });
    await assert.rejects(connect('memory:', { colour: 'red' }), { code: 'invalid' });
  });

  test('U41: of what would be ignored, and U42: of a name that is no text, name the argument', async () => {
    const lock = client.lock(fresh());
    const refusals = {
      options: [() => lock.acquire(5000), () => lock.acquire(null), () => connect('memory:', 5000), () => lock.using(() => {}, 5000),
        () => client.breakLock(lock.name, '', 123), () => client.breakLock(lock.name, '', { tokn: 5 }),
        () => client.job(fresh(), 1000).start(5000), () => client.job(fresh(), 1000).using(() => {}, 5000), () => client.election(fresh()).observe(5000).next()],
      kind: [async () => client.on('granded', () => {})],
      name: [() => client.lock(42).acquire(), () => client.lock().acquire()],
      names: [() => client.all([42]).acquire()],
      reason: [() => client.breakLock(fresh(), 5)],
      period: [() => client.job(fresh(), null).start()],
      schedule: [() => client.job(fresh(), { cron: '0 3 * * *', timeZone: 'Europe/Berlin' }).start()],
    };
    for (const [argument, calls] of Object.entries(refusals))
      for (const call of calls) await assert.rejects(call(), (error) => error.code === 'invalid' && error.fields.argument === argument && error.message.includes(argument));
  });

  test('never contain a password', async () => {
    const url = 'redis://user:s3cr3t@127.0.0.1:1';
    const error = await connect(url, { connectTimeout: 200 }).catch((error) => error);
    assert.deepEqual([error.code, error.retryable], ['unavailable', true]);
    assert.ok(!JSON.stringify([error, error.message, error.stack]).includes('s3cr3t'));
  });
});
