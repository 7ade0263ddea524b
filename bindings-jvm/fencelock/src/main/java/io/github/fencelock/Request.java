package io.github.fencelock;

import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;
import java.util.function.Function;

/**
 * Something asked of the core: how, how its answer is understood, what whoever waited does first with it, and what becomes of an
 * answer that nobody wants any more. Every wait is for a future on this side, so that threads of any kind only park.
 */
record Request<T>(Submission submission, Function<Object, T> understood, Consumer<T> begun, Consumer<T> declined) {

    /** Asks, and has whoever waits be told; answers the operation's number. */
    interface Submission {
        long by(Drain.Pending pending);
    }

    static <T> Request<T> of(
        Client client, Map<String, Object> operation, Function<Object, T> understood, Consumer<T> begun, Consumer<T> declined) {
        return new Request<>(pending -> Drain.submit(client, operation, pending), understood, begun, declined);
    }

    /** With an answer that is no loss if nobody hears it. */
    static <T> Request<T> of(Client client, Map<String, Object> operation, Function<Object, T> understood) {
        return of(client, operation, understood, value -> {}, value -> {});
    }

    /** For something to hold. */
    static Request<Guard> holding(
        Client client, Map<String, Object> operation, Function<Map<String, Object>, Guard> made) {
        return of(client, operation, granted -> made.apply(Shape.map(granted)), Guard::begin, Guard::decline);
    }

    /** For something to hold that may not be granted. */
    static Request<Optional<Guard>> trying(
        Client client, Map<String, Object> operation, Function<Map<String, Object>, Guard> made) {
        return of(client, operation, granted -> Optional.ofNullable(granted).map(Shape::map).map(made),
            hold -> hold.ifPresent(Guard::begin), hold -> hold.ifPresent(Guard::decline));
    }

    /** Waits for the answer itself, so that exceptions are made in the thread that asked, with its stack. */
    private final class Waiter extends CompletableFuture<Answer> implements Drain.Pending {
        @Override
        public void deliver(Answer answer) {
            if (!complete(answer)) {
                decline(answer);
            }
        }
    }

    /** Waits for the answer. Interrupted, it gives the operation up and takes back whatever that has won. */
    T await() throws InterruptedException {
        if (Thread.interrupted()) {
            throw new InterruptedException();
        }
        Waiter waiter = new Waiter();
        long number = submission.by(waiter);
        try {
            return hear(waiter.get());
        } catch (InterruptedException interrupted) {
            Natives.abort(number);
            if (!waiter.cancel(false)) {
                decline(waiter.join());
            }
            throw interrupted;
        } catch (ExecutionException impossible) {
            throw new InternalException(impossible.toString());
        }
    }

    /** Waits for the answer whatever it takes; an interrupt is kept for later. */
    T get() {
        Waiter waiter = new Waiter();
        submission.by(waiter);
        // A release that throws `InterruptedException` would be forgotten by its caller.
        return hear(waiter.join());
    }

    /** The answer as a future. If others complete that first, the operation is given up and leaves nothing. */
    CompletableFuture<T> async() {
        CompletableFuture<T> future = new CompletableFuture<>();
        AtomicBoolean answered = new AtomicBoolean();
        AtomicBoolean told = new AtomicBoolean();
        long number = submission.by(answer -> {
            // A second one comes where the first was a defect's: it is for nobody.
            if (told.compareAndSet(false, true)) {
                Callbacks.execute(() -> settle(future, answered, answer));
            } else {
                decline(answer);
            }
        });
        future.whenComplete((value, error) -> {
            if (!answered.get()) {
                Natives.abort(number);
            }
        });
        return future;
    }

    private void settle(CompletableFuture<T> future, AtomicBoolean answered, Answer answer) {
        if (future.isDone()) {
            decline(answer);
            return;
        }
        answered.set(true);
        T value;
        try {
            value = hear(answer);
        } catch (RuntimeException error) {
            future.completeExceptionally(error);
            return;
        }
        if (!future.complete(value)) {
            declined.accept(value);
        }
    }

    private T hear(Answer answer) {
        T value = understood.apply(answer.value());
        begun.accept(value);
        return value;
    }

    private void decline(Answer answer) {
        if (answer.well()) {
            declined.accept(understood.apply(answer.content()));
        }
    }
}
