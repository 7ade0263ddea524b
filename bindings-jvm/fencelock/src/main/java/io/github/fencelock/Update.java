package io.github.fencelock;

import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.function.Consumer;
import java.util.function.UnaryOperator;

/** An update under way. However others complete it, it ends at the step it is at. */
final class Update extends CompletableFuture<Optional<Snapshot>> {
    private final Versioned versioned;
    private final UnaryOperator<Object> change;
    private volatile CompletableFuture<?> step;

    Update(Versioned versioned, UnaryOperator<Object> change) {
        this.versioned = versioned;
        this.change = change;
    }

    Update begin() {
        after(versioned.readAsync(), seen -> write(seen, 1));
        whenComplete((snapshot, error) -> step.cancel(true));
        return this;
    }

    private void write(Optional<Snapshot> seen, int tries) {
        Object made = change.apply(seen.map(Snapshot::value).orElse(null));
        if (made == null) {
            complete(Optional.empty());
            return;
        }
        after(versioned.compareAndSetAsync(Versioned.version(seen), made), swapped -> {
            if (swapped.isDone()) {
                complete(Optional.of(Snapshot.written(made, swapped.version().getAsLong())));
            } else {
                after(versioned.resting(tries).async(), rested -> write(swapped.found(), tries + 1));
            }
        });
    }

    private <T> void after(CompletableFuture<T> begun, Consumer<T> next) {
        step = begun;
        if (isDone()) {
            begun.cancel(true);
        }
        begun.whenComplete((value, error) -> {
            try {
                if (error != null) {
                    throw error;
                }
                next.accept(value);
            } catch (CompletionException failed) {
                completeExceptionally(failed.getCause());
            } catch (Throwable failed) {
                completeExceptionally(failed);
            }
        });
    }

    /** Derived futures are plain ones. */
    @Override
    public <U> CompletableFuture<U> newIncompleteFuture() {
        return new CompletableFuture<>();
    }
}
