package io.github.fencelock;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;

/**
 * An election, made by {@link Client#election}: whoever campaigns waits in order; the leader leads until its guard is released, its process
 * ends, or it cannot renew its lease any more. It is held over the lock of the same name, and who leads is fenced by the
 * lock's token.
 *
 * <pre>{@code
 * try (Client client = Fencelock.connect("memory:")) {
 *     Election election = client.election("scheduler").info("node-1");
 *     try (Guard guard = election.campaign()) {
 *         assert election.leader().orElseThrow().token().getAsLong() == guard.token();
 *     }
 *     assert election.leader().isEmpty();
 * }
 * }</pre>
 */
public final class Election extends Acquirable<Election> implements ElectionOptions<Election> {
    private final String name;

    Election(Client client, String name, Map<String, Object> options) {
        super(client, options);
        this.name = name;
    }

    /** The name. */
    public String name() {
        return name;
    }

    /**
     * The same as {@link #acquire()}: waits until this candidate leads.
     *
     * @throws InterruptedException if the thread is interrupted meanwhile: it is no candidate any more, then
     */
    public Guard campaign() throws InterruptedException {
        return acquire();
    }

    /** The same as {@link #acquireAsync()}. To cancel it ends the candidacy. */
    public CompletableFuture<Guard> campaignAsync() {
        return acquireAsync();
    }

    /** The same as {@link #tryAcquire()}: empty if somebody else leads or stands for it. */
    public Optional<Guard> tryCampaign() {
        return tryAcquire();
    }

    /** The same as {@link #tryAcquireAsync()}. */
    public CompletableFuture<Optional<Guard>> tryCampaignAsync() {
        return tryAcquireAsync();
    }

    /** The present leader; empty if nobody leads. */
    public Optional<Leader> leader() {
        return looking().get();
    }

    /** As {@link #leader}, as a future. */
    public CompletableFuture<Optional<Leader>> leaderAsync() {
        return looking().async();
    }

    private Request<Optional<Leader>> looking() {
        return Request.of(client, Map.of("op", "leader", "name", name, "options", options()), Leader::of);
    }

    /** Follows who leads. */
    public Observer observe() {
        return new Observer(this);
    }

    /** The next leader after the one seen last; {@code null}: nothing was seen. */
    Request<Optional<Leader>> next(Optional<Leader> seen) {
        Map<String, Object> operation = new LinkedHashMap<>(Map.of("op", "observe", "name", name, "options", options()));
        if (seen != null) {
            operation.put("seen", seen.map(Leader::told).orElse(null));
        }
        return Request.of(client, operation, Leader::of);
    }

    @Override
    Election with(Map<String, Object> options) {
        return new Election(client, name, options);
    }

    @Override
    Map<String, Object> asking(boolean once) {
        return Map.of("op", once ? "try_campaign" : "campaign", "name", name);
    }

    @Override
    String shown() {
        return name;
    }
}
