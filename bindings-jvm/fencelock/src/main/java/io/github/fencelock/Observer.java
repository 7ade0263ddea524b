package io.github.fencelock;

import java.util.Optional;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;

/** Follows who leads in an {@link Election}. One call at a time. */
public final class Observer {
    private final Election election;
    /** The future of the newest report; a future that was given up has reported nothing. */
    private volatile CompletableFuture<Optional<Leader>> last = CompletableFuture.failedFuture(new CancellationException());
    /** The report before that; null if there was none. */
    private volatile Optional<Leader> seen;

    Observer(Election election) {
        this.election = election;
    }

    /**
     * The leader, or empty if nobody leads: at once at first, then after each change, at most one {@code observe} later. A leader
     * that comes and goes in between is not reported. While the store cannot be reached, it keeps asking.
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
