package io.github.fencelock.actor;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import io.github.fencelock.Acquirable;
import io.github.fencelock.All;
import io.github.fencelock.Client;
import io.github.fencelock.ClientOptions;
import io.github.fencelock.Election;
import io.github.fencelock.Fencelock;
import io.github.fencelock.Guard;
import io.github.fencelock.HoldOptions;
import io.github.fencelock.Job;
import io.github.fencelock.Leader;
import io.github.fencelock.Lock;
import io.github.fencelock.Observer;
import io.github.fencelock.Run;
import io.github.fencelock.Scope;
import io.github.fencelock.Skipped;
import io.github.fencelock.Versioned;
import java.time.Duration;
import java.time.Instant;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Function;
import java.util.function.Supplier;

/** The Java package as an actor of the conformance engine; tests/README.md of the project has the protocol. */
public final class JavaActor implements Lines.Actor {
    private final Lines lines;
    private final Map<Long, Guard> holds = new HashMap<>();
    private final Map<Long, Runnable> cancels = new HashMap<>();
    private final Map<String, Scope> scopes = new HashMap<>();
    private long numbers;
    private long turns;
    private Client client;

    private JavaActor(Lines lines) {
        this.lines = lines;
    }

    /** Serves standard input. */
    public static void main(String[] arguments) throws InterruptedException {
        Lines lines = new Lines();
        lines.serve(new JavaActor(lines));
    }

    @Override
    public void request(JsonObject request) throws Exception {
        long id = request.get("id").getAsLong();
        switch (request.get("op").getAsString()) {
            case "ping" -> lines.answer(id, Map.of("actor", "java", "pid", ProcessHandle.current().pid()));
            case "connect" -> connect(id, request);
            case "acquire" -> acquire(id, lock(request));
            case "try" -> tried(id, tried(lock(request), request));
            case "acquire_all" -> acquire(id, all(request));
            case "try_all" -> tried(id, tried(all(request), request));
            case "campaign" -> {
                Election election = election(request);
                granted(id, election::campaign, election::campaignAsync);
            }
            case "try_campaign" -> tried(id, election(request).tryCampaignAsync());
            case "adopt" -> answer(id, client().adoptAsync(request.get("text").getAsString()), this::grant);
            case "start_job" -> answer(id, job(request).startAsync(),
                start -> start instanceof Run run ? grant(run) : Shown.skipped((Skipped) start));
            case "with" -> with(id, request);
            case "abort" -> {
                cancels.getOrDefault(request.get("target").getAsLong(), () -> {}).run();
                lines.answer(id, null);
            }
            case "busy" -> {
                TimeUnit.MICROSECONDS.sleep((long) (request.get("time").getAsDouble() * 1e3));
                lines.answer(id, null);
            }
            case "crash" -> Runtime.getRuntime().halt(9);
            case "update" -> updated(id, request);
            case "observe" -> observed(id, request);
            case "release", "transfer", "drop", "end_job", "extend", "is_held", "remaining", "token", "lost" ->
                onHold(id, request);
            default -> onClient(id, request);
        }
    }

    private void connect(long id, JsonObject request) {
        ClientOptions options = new ClientOptions();
        for (Map.Entry<String, Object> one : Lines.options(request).entrySet()) {
            options = options.option(one.getKey(), one.getValue());
        }
        Client connected = Fencelock.connect(request.get("url").getAsString(), options);
        if (client != null) {
            client.closeAsync();
        }
        holds.clear();
        scopes.clear();
        turns = 0;
        client = connected;
        lines.answer(id, null);
    }

    private Client client() {
        if (client == null) {
            throw new Refusal("closed", "this actor is not connected; send `connect` first");
        }
        return client;
    }

    private static <T extends HoldOptions<T>> T with(T of, JsonObject request) {
        T with = of;
        for (Map.Entry<String, Object> one : Lines.options(request).entrySet()) {
            with = with.option(one.getKey(), one.getValue());
        }
        return with;
    }

    private Lock lock(JsonObject request) {
        String name = request.get("lock").getAsString();
        if (request.has("scope")) {
            Scope scope = scopes.computeIfAbsent(request.get("scope").getAsString(), made -> client().scope());
            return with(scope.lock(name), request);
        }
        String mode = request.has("mode") ? request.get("mode").getAsString() : "exclusive";
        return with(switch (mode) {
            case "read" -> client().readLock(name);
            case "write" -> client().writeLock(name);
            case "permit" -> client().semaphore(name, request.get("permits").getAsInt());
            default -> client().lock(name);
        }, request);
    }

    private All all(JsonObject request) {
        String[] names = request.getAsJsonArray("locks").asList().stream()
            .map(name -> name.getAsString()).toArray(String[]::new);
        return with(client().all(names), request);
    }

    private Election election(JsonObject request) {
        return with(client().election(request.get("lock").getAsString()), request);
    }

    private static Duration millis(double time) {
        return Duration.ofNanos(Math.round(time * 1e6));
    }

    private Job job(JsonObject request) {
        String name = request.get("lock").getAsString();
        Duration period = request.has("period") ? millis(request.get("period").getAsDouble()) : Duration.ofSeconds(1);
        Job job = with(request.has("cron")
            ? client().job(name, request.get("cron").getAsString(), request.get("timezone").getAsString())
            : client().job(name, period), request);
        boolean timed = request.has("at") && !request.get("at").isJsonNull();
        return timed ? job.at(Instant.EPOCH.plus(millis(request.get("at").getAsDouble()))) : job;
    }

    private Versioned version(JsonObject request) {
        Versioned version = client().version(request.get("lock").getAsString());
        for (Map.Entry<String, Object> one : Lines.options(request).entrySet()) {
            version = version.option(one.getKey(), one.getValue());
        }
        return version;
    }

    /** Answers when the future does; until then it can be cancelled. */
    private <T> void answer(long id, CompletableFuture<T> future, Function<T, Object> shown) {
        cancels.put(id, () -> future.cancel(true));
        future.whenComplete((value, error) -> ended(id, () -> {
            if (error == null) {
                lines.answer(id, shown.apply(value));
            } else {
                lines.refuse(id, error);
            }
        }));
    }

    private void acquire(long id, Acquirable<?> of) {
        granted(id, of::acquire, of::acquireAsync);
    }

    /** By turns a thread of its own waits for it, which an abort interrupts, and a future answers, which that cancels. */
    private void granted(
        long id, Callable<? extends Guard> waits, Supplier<? extends CompletableFuture<? extends Guard>> future) {
        if (turns++ % 2 == 0) {
            thread(id, waits, this::grant);
        } else {
            answer(id, future.get(), this::grant);
        }
    }

    /** Answers when the call returns; until then its thread can be interrupted. */
    private <T> void thread(long id, Callable<T> call, Function<T, Object> shown) {
        Thread thread = new Thread(() -> {
            try {
                T value = call.call();
                ended(id, () -> lines.answer(id, shown.apply(value)));
            } catch (Exception error) {
                ended(id, () -> lines.refuse(id, error));
            }
        });
        cancels.put(id, thread::interrupt);
        thread.start();
        // It has asked when it waits or has ended: requests reach the core in their order.
        while (thread.getState() == Thread.State.NEW || thread.getState() == Thread.State.RUNNABLE) {
            Thread.yield();
        }
    }

    private void tried(long id, CompletableFuture<? extends Optional<? extends Guard>> future) {
        answer(id, future, hold -> hold.map(this::grant).orElse(null));
    }

    private Object grant(Guard hold) {
        long number = ++numbers;
        holds.put(number, hold);
        Object instant = hold instanceof Run run ? run.instant().toEpochMilli() : null;
        return Shown.object("guard", number, "token", hold.token(), "instant", instant);
    }

    private void with(long id, JsonObject request) {
        Lock lock = lock(request);
        long work = Math.round(request.get("work").getAsDouble());
        thread(id, () -> lock.withLock(guard -> work(guard, work)), token -> Map.of("token", token));
    }

    private void ended(long id, Runnable answer) {
        lines.later(() -> {
            cancels.remove(id);
            answer.run();
        });
    }

    /** Does nothing for so long, or until the lock is lost. */
    private static long work(Guard guard, long millis) throws Exception {
        try {
            guard.lost().get(millis, TimeUnit.MILLISECONDS);
        } catch (TimeoutException done) {
            return guard.token();
        }
        guard.check();
        throw new IllegalStateException("lost, yet held");
    }

    private void updated(long id, JsonObject request) {
        long add = request.get("add").getAsLong();
        answer(id, version(request).updateAsync(seen -> {
            long sum = (seen == null ? 0 : (long) seen) + add;
            return sum < 0 ? null : sum;
        }), snapshot -> Shown.snapshot(snapshot.orElse(null)));
    }

    private void observed(long id, JsonObject request) {
        boolean nobody = request.get("seen").isJsonNull();
        OptionalLong seen =
            nobody ? OptionalLong.empty() : OptionalLong.of(request.getAsJsonObject("seen").get("token").getAsLong());
        answer(id, next(election(request).observe(), seen), leader -> Shown.leader(leader.orElse(null)));
    }

    private static CompletableFuture<Optional<Leader>> next(Observer observer, OptionalLong seen) {
        return observer.changedAsync().thenCompose(leader -> {
            OptionalLong told = leader.map(Leader::token).orElseGet(OptionalLong::empty);
            return told.equals(seen) ? next(observer, seen) : CompletableFuture.completedFuture(leader);
        });
    }

    private static CompletableFuture<Optional<Guard>> tried(Acquirable<?> lock, JsonObject request) {
        return request.has("wait")
            ? lock.tryAcquireAsync(Duration.ofMillis(request.get("wait").getAsLong())) : lock.tryAcquireAsync();
    }

    private void gate(long id, JsonObject request) {
        String key = request.get("resource").getAsString();
        long token = request.get("token").getAsLong();
        if (request.get("write").isJsonPrimitive()) {
            answer(id, client().gate().deleteAsync(key, token), was -> was);
            return;
        }
        JsonObject write = request.getAsJsonObject("write");
        if (write.has("set")) {
            answer(id, client().gate().setAsync(key, token, write.get("set").getAsString()), done -> null);
        } else {
            answer(id, client().gate().incrementAsync(key, token, write.get("increment").getAsLong()), sum -> sum);
        }
    }

    private void onClient(long id, JsonObject request) {
        switch (request.get("op").getAsString()) {
            case "inspect" -> answer(id, lock(request).inspectAsync(), Shown::state);
            case "is_locked" -> answer(id, lock(request).isLockedAsync(), locked -> locked);
            case "gate" -> gate(id, request);
            case "break_lock" -> {
                String name = request.get("lock").getAsString();
                String reason = request.get("reason").getAsString();
                answer(id, request.has("token")
                    ? client().breakHoldAsync(name, request.get("token").getAsLong(), reason)
                    : client().breakLockAsync(name, reason), Shown::holders);
            }
            case "ping_store" -> answer(id, client().pingAsync(), Shown::millis);
            case "names" -> answer(id, client().namesAsync(request.get("prefix").getAsString()), names -> names);
            case "leader" -> answer(id, election(request).leaderAsync(), leader -> Shown.leader(leader.orElse(null)));
            case "inspect_job" -> answer(id, job(request).inspectAsync(), run -> Shown.job(run.orElse(null)));
            case "read_version" -> answer(id, version(request).readAsync(), seen -> Shown.snapshot(seen.orElse(null)));
            case "compare_and_set" -> {
                boolean none = request.get("expected").isJsonNull();
                OptionalLong expected =
                    none ? OptionalLong.empty() : OptionalLong.of(request.get("expected").getAsLong());
                Object value = Lines.plain(request.get("value"));
                answer(id, version(request).compareAndSetAsync(expected, value), Shown::swapped);
            }
            case "delete_version" ->
                answer(id, version(request).deleteAsync(request.get("expected").getAsLong()), Shown::swapped);
            case "load" -> lines.answer(id, Shown.stats(client().stats()));
            case "close" -> answer(id, client().closeAsync(), closed -> null);
            default -> throw new IllegalArgumentException("this actor does not know " + request.get("op"));
        }
    }

    private void onHold(long id, JsonObject request) {
        long number = request.get("guard").getAsLong();
        String op = request.get("op").getAsString();
        client();
        boolean gives = op.equals("release") || op.equals("transfer") || op.equals("drop") || op.equals("end_job");
        Guard hold = gives ? holds.remove(number) : holds.get(number);
        switch (op) {
            case "is_held" -> lines.answer(id, hold != null && hold.isHeld());
            case "remaining" -> lines.answer(id, hold == null ? 0 : Shown.millis(hold.remaining()));
            default -> {
                if (hold == null) {
                    throw new Refusal("not_held", "this actor has no such guard");
                }
                onHold(id, op, number, hold, request);
            }
        }
    }

    private void onHold(long id, String op, long number, Guard hold, JsonObject request) {
        switch (op) {
            case "release", "end_job" -> answer(id, giveBack(hold, request), Object::toString);
            case "transfer" -> answer(id, hold.transferAsync(), text -> text);
            case "drop" -> {
                if (hold instanceof Run run) {
                    run.failAsync();
                } else {
                    hold.decline();
                }
                lines.answer(id, null);
            }
            case "extend" -> answer(id, hold.extendAsync(millis(request.get("ttl").getAsDouble())), done -> null);
            case "token" -> lines.answer(id, hold.token());
            default -> {
                Client mine = client;
                hold.onLost(() -> lines.later(() -> {
                    // Those of an earlier client went with it.
                    if (client == mine) {
                        lines.say(Shown.object("event", "lost", "guard", number));
                    }
                }));
                lines.answer(id, null);
            }
        }
    }

    private static CompletableFuture<?> giveBack(Guard hold, JsonObject request) {
        JsonElement succeeded = request.get("succeeded");
        return succeeded != null && succeeded.getAsBoolean() ? ((Run) hold).succeedAsync() : hold.releaseAsync();
    }

    @Override
    public void leave() {
        if (client != null) {
            client.close();
        }
    }
}
