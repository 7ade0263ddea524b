"""The Python actor: the requests of tests/README.md over the installed package. `actor.py sync` answers with `fencelock` in
threads, `actor.py asyncio` with `fencelock.asyncio`."""

import asyncio
import functools
import json
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import fencelock.asyncio

BLOCKING = sys.argv[1] == "sync"
TIMES = {row["name"] for row in fencelock.TABLE if "duration" in row["kind"]}
KINDS = {"read": "read_lock", "write": "write_lock"}


def said(options):
    """The case's options in the package's unit: seconds."""
    number = lambda value: isinstance(value, int | float) and not isinstance(value, bool)  # noqa: E731
    in_seconds = lambda name, value: name in TIMES and number(value)  # noqa: E731
    return {name: value / 1000 if in_seconds(name, value) else value for name, value in options.items()}


def seen_at(leader):
    return leader and {"token": leader.token, "info": json.dumps(leader.info)}


def waiting(wait):
    """The argument of a try that waits for so many milliseconds."""
    return () if wait is None else (wait / 1000,)


class Actor:
    def __init__(self):
        self.client, self.scopes, self.guards, self.numbers = None, {}, {}, 0
        self.tasks = {}
        self.clients = []
        self.threads = ThreadPoolExecutor(1024)

    def say(self, message):
        sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()

    async def ask(self, of, verb, *words, **named):
        """Calls the method of the package, in a thread if it waits."""
        if not BLOCKING:
            return await getattr(of, verb)(*words, **named)
        call = functools.partial(getattr(of, verb), *words, **named)
        return await asyncio.get_running_loop().run_in_executor(self.threads, call)

    def lock(self, lock, mode="exclusive", permits=None, scope=None, options=None):
        options = said(options or {})
        if mode in KINDS:
            return getattr(self.client, KINDS[mode])(lock, **options)
        if mode == "permit":
            return self.client.semaphore(lock, permits, **options)
        if scope is not None:
            return self.scopes.setdefault(scope, self.client.scope()).lock(lock, **options)
        return self.client.lock(lock, **options)

    def keep(self, guard, **facts):
        if guard is None:
            return None
        self.numbers += 1
        self.guards[self.numbers] = guard
        return {"guard": self.numbers, "token": guard.token, **facts}

    def guard(self, number):
        if number not in self.guards:
            raise fencelock.NotHeldError("this actor has no such guard")
        return self.guards[number]

    async def serve(self, id, op, words):
        try:
            end = {"ok": await getattr(self, f"do_{op}")(**words)}
        except asyncio.CancelledError:
            end = {"error": {"code": "cancelled", "message": "the task was cancelled", "retryable": False, "fields": {}}}
        except fencelock.FencelockError as error:
            told = {"code": error.code, "message": error.message, "retryable": error.retryable, "fields": error.fields}
            end = {"error": told}
        except Exception as error:  # What is no FencelockError is a defect, and has to be seen as one.
            message = f"{type(error).__name__}: {error}"
            end = {"error": {"code": "internal", "message": message, "retryable": False, "fields": {}}}
        if self.tasks.pop(id, None) is not None:
            self.say({"id": id, **end})

    def request(self, line):
        words = json.loads(line)
        id, op = words.pop("id"), words.pop("op")
        if self.client is None and op not in ("ping", "connect", "busy", "crash"):
            error = {"code": "closed", "message": "this actor is not connected", "retryable": False, "fields": {}}
            self.say({"id": id, "error": error})
            return
        self.tasks[id] = asyncio.create_task(self.serve(id, op, words))

    async def do_ping(self):
        return {"actor": "python", "pid": os.getpid()}

    async def do_connect(self, url, options=None):
        client = (fencelock if BLOCKING else fencelock.asyncio).connect(url, **said(options or {}))
        self.clients.append(client)
        await self.ask(client, "open")
        for id, task in list(self.tasks.items()):
            if isinstance(id, int) and task is not asyncio.current_task():
                del self.tasks[id]
                task.cancel()
                error = {"code": "closed", "message": "the client was given up", "retryable": False, "fields": {}}
                self.say({"id": id, "error": error})
        for guard in self.guards.values():
            guard.forget()
        self.guards, self.scopes, self.client = {}, {}, client

    async def do_acquire(self, **words):
        return self.keep(await self.ask(self.lock(**words), "acquire"))

    async def do_try(self, wait=None, **words):
        return self.keep(await self.ask(self.lock(**words), "try_acquire", *waiting(wait)))

    async def do_acquire_all(self, locks, options=None):
        return self.keep(await self.ask(self.client.all(locks, **said(options or {})), "acquire"))

    async def do_try_all(self, locks, options=None, wait=None):
        asked = self.client.all(locks, **said(options or {}))
        return self.keep(await self.ask(asked, "try_acquire", *waiting(wait)))

    async def do_with(self, lock, work, options=None):
        lock = self.lock(lock, options=options)
        if not BLOCKING:
            async with lock as guard:
                await asyncio.sleep(work / 1000)
            return {"token": guard.token}

        def body():
            # A body in a thread is not ended from outside: it looks at its guard between its steps.
            with lock as guard:
                end = time.monotonic() + work / 1000
                while (left := end - time.monotonic()) > 0:
                    time.sleep(min(left, 0.005))
                    guard.check()
            return {"token": guard.token}

        return await asyncio.get_running_loop().run_in_executor(self.threads, body)

    async def do_abort(self, target):
        if target in self.tasks:
            self.tasks[target].cancel()

    async def do_release(self, guard):
        return await self.end(guard, "release")

    async def end(self, guard, verb):
        """Gives a guard back; one that was refused is still there."""
        held = self.guard(guard)
        released = await self.ask(held, verb)
        self.guards.pop(guard, None)
        return released.value

    async def do_transfer(self, guard):
        return await self.ask(self.guards.pop(guard), "transfer")

    async def do_adopt(self, text):
        return self.keep(await self.ask(self.client, "adopt", text))

    async def do_drop(self, guard):
        self.guard(guard).forget()
        del self.guards[guard]

    async def do_extend(self, guard, ttl):
        await self.ask(self.guard(guard), "extend", ttl / 1000)

    async def do_is_held(self, guard):
        return guard in self.guards and self.guards[guard].is_held

    async def do_remaining(self, guard):
        return self.guards[guard].remaining * 1000 if guard in self.guards else 0

    async def do_token(self, guard):
        return self.guard(guard).token

    async def do_lost(self, guard):
        held = self.guard(guard)

        async def tell():
            if await self.ask(held, "wait_lost"):
                self.say({"event": "lost", "guard": guard})

        self.tasks[f"lost {guard}"] = asyncio.create_task(tell())

    async def do_inspect(self, lock, options=None):
        state = await self.ask(self.lock(lock, options=options), "inspect")
        ms = lambda time: None if time is None else time * 1000  # noqa: E731
        holders = [
            {"mode": of.mode, "token": of.token, "left": ms(of.left), "held_for": ms(of.held_for), "info": of.info}
            for of in state.holders
        ]
        waiters = [
            {"mode": of.mode, "waiting_for": ms(of.waiting_for), "info": of.info} for of in state.waiters
        ]
        first = holders[0] if holders else None
        return {"kind": state.kind, "holder": first, "holders": holders, "last": state.last, "waiters": waiters}

    async def do_campaign(self, lock, options=None):
        return self.keep(await self.ask(self.client.election(lock, **said(options or {})), "acquire"))

    async def do_try_campaign(self, lock, options=None):
        return self.keep(await self.ask(self.client.election(lock, **said(options or {})), "try_acquire"))

    async def do_leader(self, lock):
        return seen_at(await self.ask(self.client.election(lock), "leader"))

    async def do_observe(self, lock, seen, options=None):
        def another(leader):
            return (leader and leader.token) != (seen and seen["token"])

        election = self.client.election(lock, **said(options or {}))
        if BLOCKING:
            look = lambda: next(filter(another, election.observe()))  # noqa: E731
            return seen_at(await asyncio.get_running_loop().run_in_executor(self.threads, look))
        async for leader in election.observe():
            if another(leader):
                return seen_at(leader)

    async def do_start_job(self, lock, period=None, cron=None, timezone=None, at=None, options=None):
        period = None if period is None else timedelta(milliseconds=period)
        job = self.client.job(lock, period, cron=cron, timezone=timezone, **said(options or {}))
        run = await self.ask(job, "start", at and at / 1000)
        if not run:
            return {"skipped": {"reason": run.reason}}
        return self.keep(run, instant=run.instant * 1000)

    async def do_end_job(self, guard, succeeded):
        return await self.end(guard, "succeed" if succeeded else "fail")

    async def do_inspect_job(self, lock):
        state = await self.ask(self.client.job(lock, 1), "inspect")
        times = ("instant", "started", "seen")
        facts = ("status", "dead", "token")
        return state and {
            **{name: getattr(state, name) * 1000 for name in times},
            **{name: getattr(state, name) for name in facts},
            "info": json.dumps(state.info),
        }

    async def do_read_version(self, lock):
        seen = await self.ask(self.client.version(lock), "read")
        return seen and {"value": seen.value, "version": seen.version}

    def swapped(self, swapped):
        if swapped.done:
            return {"done": swapped.version}
        there = swapped.there
        return {"changed": there and {"value": there.value, "version": there.version}}

    async def do_compare_and_set(self, lock, expected, value, options=None):
        version = self.client.version(lock, **said(options or {}))
        return self.swapped(await self.ask(version, "compare_and_set", expected, value))

    async def do_delete_version(self, lock, expected, options=None):
        version = self.client.version(lock, **said(options or {}))
        return self.swapped(await self.ask(version, "delete", expected))

    async def do_update(self, lock, add, options=None):
        def change(value):
            changed = (value or 0) + add
            return changed if changed >= 0 else None

        made = await self.ask(self.client.version(lock, **said(options or {})), "update", change)
        return made and {"value": made.value, "version": made.version}

    async def do_is_locked(self, lock):
        return await self.ask(self.client.lock(lock), "is_locked")

    async def do_break_lock(self, lock, reason, token=None):
        broken = await self.ask(self.client, "break_lock", lock, reason, token=token)
        return [{"token": holder.token} for holder in broken]

    async def do_gate(self, resource, token, write):
        name, value = next(iter(write.items())) if isinstance(write, dict) else (write, None)
        return await self.ask(self.client.gate(), name, resource, token, *([] if value is None else [value]))

    async def do_ping_store(self):
        return await self.ask(self.client, "ping") * 1000

    async def do_names(self, prefix):
        return await self.ask(self.client, "names", prefix)

    async def do_load(self):
        return {**self.client.stats(), "done": 0}

    async def do_close(self):
        await self.ask(self.client, "close")

    async def do_busy(self, time):
        globals()["time"].sleep(time / 1000)

    async def do_crash(self):
        os._exit(9)


async def main():
    actor = Actor()
    reader = asyncio.StreamReader(limit=1 << 20)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        actor.request(line)
    # Closing ends every wait, those that were given up in their threads as well.
    await asyncio.gather(*(actor.ask(client, "close") for client in actor.clients))
    for task in list(actor.tasks.values()):
        task.cancel()
    actor.threads.shutdown(wait=False, cancel_futures=True)


asyncio.run(main())
