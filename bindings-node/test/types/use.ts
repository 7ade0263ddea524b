// Compiled only: what users write, with the types they rely on.
import { connect, FencelockError, LockLostError, LockTimeoutError } from 'fencelock';
import type { Client, Code, Guard, Leader, LockEvent, LockOptions, Reason, Released, Snapshot, Start } from 'fencelock';

export async function use(signal: AbortSignal): Promise<void> {
  await using client: Client = await connect('memory:', { ttl: 10_000, connectTimeout: 500, info: { room: '12' } });
  const options: LockOptions = { ttl: 5_000, wait: null, maxHold: 60_000, fair: false };
  await using guard: Guard = await client.lock('orders:42', options).acquire({ wait: 5_000, signal });
  const token: number = guard.token;
  const aborted: boolean = guard.signal.aborted;
  const maybe: Guard | null = await client.readLock('x').tryAcquire();
  maybe?.check();
  const text: string = await client.writeLock('x').using(async (held, lost) => `${held.token} ${lost.aborted}`, { signal });
  const all: Guard = await client.all(['a', 'b']).acquire();
  const one: number | undefined = all.tokens.get('a');
  const released: Released = await all.release();
  const version = client.version<{ stock: number }>('lamp');
  const snapshot: Snapshot<{ stock: number }> | null = await version.update((value) => ({ stock: (value?.stock ?? 0) + 1 }));
  for await (const leader of client.election('scheduler').observe({ signal })) {
    const seen: Leader | null = leader;
    if (seen) break;
  }
  const ran: number | null = await client.job('nightly', 1_000).using((run) => run.instant);
  const start: Start = await client.job('nightly', { cron: '0 3 * * *', timezone: 'Europe/Berlin' }).start();
  const { run, skipped } = start;
  const reason: Reason | Date = run ? new Date(run.instant) : skipped.reason;
  console.log(reason);
  const failed: Promise<Released> | undefined = run?.release();
  client.on('lost', (event: LockEvent) => console.error(event.name, event.token));
  const kept: number | undefined = client.options.ttl;
  console.log(token, aborted, text, one, released, snapshot, ran, failed, kept);
  try {
    await client.writeLock('x').acquire();
  } catch (error) {
    if (error instanceof LockTimeoutError || error instanceof LockLostError) return;
    if (error instanceof FencelockError) {
      const code: Code = error.code;
      console.error(code, error.fields['name'], error.retryable);
    }
  }
  // @ts-expect-error: there is no such option
  client.lock('x', { tll: 5 });
  // @ts-expect-error: a token is not to be set
  guard.token = 5;
  // @ts-expect-error: an option of the client
  client.lock('x', { timeout: 5 });
  // @ts-expect-error: an option of a lock
  client.election('x', { fair: false });
  // @ts-expect-error: the same for one campaign
  await client.election('x', { observe: 500, wait: 1_000 }).campaign({ wait: null, maxHold: 1_000 });
  // @ts-expect-error: one word out of a few
  await connect('memory:', { sslmode: 'maybe' });
}
