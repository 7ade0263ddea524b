package io.github.fencelock;

import java.util.Optional;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;

/** Follows who leads in an {@link Election}. One call at a time. */
public final class Observer {
    private final Election election;
    /** What was told last; of a future that was given up, nothing was. */
    private volatile CompletableFuture<Optional<Leader>> last = CompletableFuture.failedFuture(new CancellationException());
    /** What was told before that; null: nothing. */
    private volatile Optional<Leader> seen;

    Observer(Election election) {
        this.election = election;
    }

    /**
     * Who leads, or empty if nobody does: at once at first, then whenever that has changed, at most one {@code observe}
     * later. A leader that came and went in between is not told. While the store cannot be reached, it goes on looking.
     *
     * @throws InterruptedException if the thread is interrupted meanwhile
     */
    public Optional<Leader> changed() throws InterruptedException {
        Optional<Leader> leader = election.next(seen()).await();
        last = CompletableFuture.completedFuture(leader);
        return leader;
    }

    /** As {@link #changed}, as a future. What a future that was given up would have told, the next one does. */
    public CompletableFuture<Optional<Leader>> changedAsync() {
        return last = election.next(seen()).async();
    }

    private Optional<Leader> seen() {
        if (last.isDone() && !last.isCompletedExceptionally()) {
            seen = last.join();
        }
        return seen;
    }
}
