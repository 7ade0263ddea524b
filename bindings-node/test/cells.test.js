import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect, LockLostError } from 'fencelock';
import { fresh, onEveryStore, LANGUAGE } from './support/stores.js';

const DAY = 24 * 3_600_000;

onEveryStore('versions, jobs and elections', (store) => {
  let client;
  before(async () => (client = await connect(store.url, { observe: 20 })));
  after(() => client.close());

  test('a value is replaced only if nobody was faster', async () => {
    const version = client.version(fresh());
    assert.equal(await version.read(), null);
    const { done } = await version.compareAndSet(null, { stock: 3 });
    assert.deepEqual(await version.read(), { value: { stock: 3 }, version: done });
    assert.deepEqual(await version.compareAndSet(null, { stock: 9 }), { changed: { value: { stock: 3 }, version: done } });
    const next = await version.compareAndSet(done, { stock: 2 });
    assert.ok(next.done > done);
    assert.ok('changed' in (await version.delete(done)));
    assert.ok('done' in (await version.delete(next.done)));
    assert.equal(await version.read(), null);
  });

  test('updates at once all count', async () => {
    const version = client.version(fresh(), { retries: 200 });
    await Promise.all(Array.from({ length: 8 }, () => version.update(async (value = 0) => value + 1)));
    assert.equal((await version.read()).value, 8);
    assert.equal(await version.update(() => undefined), null);
    const hasty = client.version(version.name, { retries: 0 });
    const change = async (value) => (await version.update((value) => value + 1), value + 1);
    await assert.rejects(hasty.update(change), { code: 'conflict', retryable: true });
  });

  test('a job runs once in its period', async () => {
    const job = client.job(fresh('job'), DAY);
    assert.equal(await job.inspect(), null);
    const before = Date.now();
    const token = await job.using((run) => {
      assert.ok(run.instant <= before + 60_000 && run.instant > before - DAY - 60_000);
      return run.token;
    });
    assert.equal(await job.using(() => assert.fail('once is enough')), null);
    const told = [];
    await job.using(() => assert.fail('once is enough'), { skipped: ({ reason }) => told.push(reason) });
    assert.deepEqual(told, ['done']);
    const { run: none, skipped } = await job.start();
    assert.equal(none, null);
    const { status, dead, token: last, started, info } = await job.inspect();
    assert.deepEqual([skipped.reason, skipped.last], ['done', await job.inspect()]);
    assert.ok(skipped.next > before + DAY / 2 - 60_000);
    const { skipped: soon } = await client.job(job.name, 3 * DAY).start({ at: skipped.last.instant + 1 });
    assert.deepEqual([soon.reason, soon.last.token], ['not_due', token]);
    await assert.rejects(job.start({ at: Date.now() + 2 * DAY }), ({ code, fields }) => code === 'invalid' && fields.argument === 'at');
    assert.deepEqual([status, dead, last, info.language], ['succeeded', false, token, LANGUAGE]);
    assert.ok(Math.abs(started - before) < 60_000);
  });

  test('a job whose body throws has failed', async () => {
    const job = client.job(fresh('job'), DAY);
    await assert.rejects(job.using(() => { throw new RangeError('mine'); }), RangeError);
    const { status, instant } = await job.inspect();
    assert.equal(status, 'failed');
    const often = client.job(job.name, 10);
    await sleep(10);
    const { run: again } = await often.start({ at: instant + 1 });
    assert.ok(again.isHeld);
    assert.equal(await again.succeed(), 'released');
    await assert.rejects(again.release(), { code: 'not_held' });
    await sleep(10);
    const { run: left } = await often.start({ at: instant + 2 });
    await left[Symbol.asyncDispose]();
    assert.equal((await job.inspect()).status, 'failed');
  });

  test('a run that takes too long is lost', async () => {
    const job = client.job(fresh('job'), DAY, { atMostFor: 100 });
    const error = await job.using((run, signal) => sleep(5_000, undefined, { signal })).catch((error) => error);
    assert.ok(error instanceof LockLostError, String(error));
  });

  test('one leads, and everybody sees who', async () => {
    const election = client.election(fresh('election'), { info: 'node-1' });
    assert.equal(await election.leader(), null);
    const first = await election.campaign();
    assert.equal(await election.tryCampaign(), null);
    const leader = await election.leader();
    assert.deepEqual([leader.token, leader.info.info], [first.token, 'node-1']);
    const seen = [];
    const controller = new AbortController();
    const observing = (async () => {
      for await (const one of election.observe({ after: leader, signal: controller.signal })) seen.push(one?.token);
    })();
    const second = election.tryCampaign({ wait: 20_000 });
    await sleep(60);
    assert.equal(await first.release(), 'released');
    const guard = await second;
    while (seen.length === 0) await sleep(5);
    await guard.release();
    while (seen.at(-1) !== undefined) await sleep(5);
    controller.abort();
    await assert.rejects(observing, { name: 'AbortError' });
    assert.deepEqual([seen.at(0), seen.at(-1)], [guard.token, undefined]);
  });
});
