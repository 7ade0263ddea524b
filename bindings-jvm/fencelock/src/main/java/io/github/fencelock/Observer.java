package io.github.fencelock;

import java.util.Optional;
import java.util.concurrent.CompletableFuture;

/** Follows who leads in an {@link Election}. One call at a time. */
public final class Observer {
    private final Election election;
    /** What was told last; null: nothing. */
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
        return told(election.next(seen).await());
    }

    /** As {@link #changed}, as a future. */
    public CompletableFuture<Optional<Leader>> changedAsync() {
        Request<Optional<Leader>> next = election.next(seen);
        return new Request<>(next.submission(), leader -> told(next.understood().apply(leader)), next.declined()).async();
    }

    private Optional<Leader> told(Optional<Leader> leader) {
        seen = leader;
        return leader;
    }
}
