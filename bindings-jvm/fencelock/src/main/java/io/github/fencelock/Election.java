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
public final class Election implements ElectionOptions<Election> {
    private final Client client;
    private final String name;
    private final Map<String, Object> options;

    Election(Client client, String name, Map<String, Object> options) {
        this.client = client;
        this.name = name;
        this.options = options;
    }

    @Override
    public Election option(String name, Object value) {
        return new Election(client, this.name, Options.with(options, name, value));
    }

    /** The name. */
    public String name() {
        return name;
    }

    /**
     * Waits until this candidate leads, for ever or as long as the option {@code wait} says.
     *
     * @throws InterruptedException if the thread is interrupted meanwhile: it is no candidate any more, then
     * @throws LockTimeoutException if the wait is over before that
     * @throws LockLostException if the lease ended while this thread was stopped, before the call returned
     */
    public Guard campaign() throws InterruptedException {
        return campaigning().await();
    }

    /** As {@link #campaign}, as a future. To cancel it ends the candidacy. */
    public CompletableFuture<Guard> campaignAsync() {
        return campaigning().async();
    }

    private Request<Guard> campaigning() {
        return Request.holding(client, operation("campaign"), this::guard);
    }

    /** Leads if nobody else does or stands for it. */
    public Optional<Guard> tryCampaign() {
        return trying().get();
    }

    /** As {@link #tryCampaign}, as a future. */
    public CompletableFuture<Optional<Guard>> tryCampaignAsync() {
        return trying().async();
    }

    private Request<Optional<Guard>> trying() {
        return Request.trying(client, operation("try_campaign"), this::guard);
    }

    private Guard guard(Map<String, Object> granted) {
        return new Guard(client, name, granted);
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
        return Request.of(client, Map.of("op", "leader", "name", name), Leader::of);
    }

    /** Follows who leads. */
    public Observer observe() {
        return new Observer(this);
    }

    /** The next leader after the one seen last; {@code null}: nothing was seen. */
    Request<Optional<Leader>> next(Optional<Leader> seen) {
        Map<String, Object> operation = operation("observe");
        if (seen != null) {
            operation.put("seen", seen.map(Leader::told).orElse(null));
        }
        return Request.of(client, operation, Leader::of);
    }

    private Map<String, Object> operation(String word) {
        Map<String, Object> operation = new LinkedHashMap<>();
        operation.put("op", word);
        operation.put("name", name);
        operation.put("options", options);
        return operation;
    }
}
