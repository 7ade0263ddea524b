// The account, and the three ways to deduct from it.
import { setTimeout as rest } from 'node:timers/promises';
import { connect, type Client, type Lock, type Version } from 'fencelock';
// The names are those of better-sqlite3.
import Database from 'libsql';

/** The time a deduction takes between reading the balance and writing it, in milliseconds. */
const MOMENT = 2;
const NAME = 'fencelock-example:balance';

/** Where the account lies, and what it is opened with unless it is there. */
export interface Asked {
  how: string;
  url: string;
  book: string;
  opened: number;
}

export interface Books {
  opened: number;
  balance: number;
  paid: number;
}

export interface Account extends AsyncDisposable {
  /** Whether the balance covered the amount. If it did not, nothing has changed. */
  deduct(amount: number): Promise<boolean>;
  books(): Promise<Books>;
}

export async function open(asked: Asked): Promise<Account> {
  switch (asked.how) {
    case 'version':
      return ByVersion.open(await connect(asked.url), asked.opened);
    case 'lock':
      return new Locked(await connect(asked.url), asked);
    case 'none':
      return new Unlocked(asked);
    default:
      throw new Error(`--how is version, lock or none, not ${asked.how}`);
  }
}

/** The account is one value, so that all of it changes at once. */
class ByVersion implements Account {
  private constructor(readonly client: Client, readonly account: Version<Books>) {}

  static async open(client: Client, opened: number): Promise<ByVersion> {
    // With eight that change it all the time, somebody else is faster more often than usual.
    const account = client.version<Books>(NAME, { retries: 100 });
    await account.compareAndSet(null, { opened, balance: opened, paid: 0 });
    return new ByVersion(client, account);
  }

  async deduct(amount: number): Promise<boolean> {
    // Asked again with what is there by then, if somebody else was faster. `undefined`: it is not covered.
    const written = await this.account.update((books) => {
      if (!books || books.balance < amount) return undefined;
      return { ...books, balance: books.balance - amount, paid: books.paid + amount };
    });
    return written !== null;
  }

  async books(): Promise<Books> {
    return (await this.account.read())!.value;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.client.close();
  }
}

/** The account in a SQLite file: what is left, and every payment. */
class Unlocked implements Account {
  readonly book;

  constructor({ book, opened }: Asked) {
    this.book = new Database(book, { timeout: 60_000 });
    const create = this.book.transaction(() => {
      this.book.exec('CREATE TABLE IF NOT EXISTS account (opened INTEGER, balance INTEGER, fence INTEGER)');
      this.book.exec('CREATE TABLE IF NOT EXISTS payments (amount INTEGER)');
      const unlessItIsThere = 'WHERE NOT EXISTS (SELECT * FROM account)';
      this.book.prepare(`INSERT INTO account SELECT ?, ?, 0 ${unlessItIsThere}`).run(opened, opened);
    });
    create.immediate();
  }

  async deduct(amount: number): Promise<boolean> {
    // Without a lock there is no token: all write as the same holder.
    return (await this.readAndWrite(amount, 0)) === true;
  }

  /** Whether the amount was paid. Null: a newer holder has come, and nothing is written. */
  protected async readAndWrite(amount: number, token: number): Promise<boolean | null> {
    // Reading leaves the token too: an older holder that writes after this would be undone by what is made of it here.
    const read = 'UPDATE account SET fence = ? WHERE fence <= ? RETURNING balance';
    const [account] = this.book.prepare(read).all(token, token) as { balance: number }[];
    if (!account) return null;
    if (account.balance < amount) return false;
    await rest(MOMENT);
    // The balance and the payment are one change: a crash leaves both or neither.
    const change = this.book.transaction(() => {
      const write = 'UPDATE account SET balance = ? WHERE fence <= ?';
      const { changes } = this.book.prepare(write).run(account.balance - amount, token);
      if (changes === 0) return null;
      this.book.prepare('INSERT INTO payments VALUES (?)').run(amount);
      return true;
    });
    return change.immediate();
  }

  async books(): Promise<Books> {
    const paid = '(SELECT coalesce(sum(amount), 0) FROM payments) AS paid';
    return this.book.prepare(`SELECT opened, balance, ${paid} FROM account`).get() as Books;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.book.close();
  }
}

/** The same with one worker at a time. */
class Locked extends Unlocked {
  readonly #client: Client;
  readonly #lock: Lock;

  constructor(client: Client, asked: Asked) {
    super(asked);
    this.#client = client;
    this.#lock = client.lock(NAME);
  }

  override async deduct(amount: number): Promise<boolean> {
    for (;;) {
      const guard = await this.#lock.acquire();
      try {
        const paid = await this.readAndWrite(amount, guard.token);
        if (paid !== null) return paid;
      } finally {
        // The book has judged already: whether the lease has ended since the write does not matter.
        await guard.release();
      }
    }
  }

  override async [Symbol.asyncDispose](): Promise<void> {
    await super[Symbol.asyncDispose]();
    await this.#client.close();
  }
}
