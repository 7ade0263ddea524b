package io.github.fencelock;

import java.time.Duration;
import java.time.Instant;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;

/**
 * A scheduled job, made by {@link Client#job}. Every process of the fleet asks for a run when its own schedule says so; one
 * of them gets it.
 *
 * <p>A run is named by its <em>scheduled instant</em>, the multiple of the period (counted from 1970, UTC) that is nearest to
 * the store's clock. It starts only if its instant is later than that of the last run, and that one is over. A run that died
 * is not run again, unless {@code retryDead} says so: it may have done its work.
 *
 * <pre>{@code
 * try (Client client = Fencelock.connect("memory:")) {
 *     Job nightly = client.job("nightly", Duration.ofDays(1));
 *     assert nightly.withRun(run -> System.out.println("cleaning up under token " + run.token()));
 *     assert !nightly.withRun(run -> System.out.println("once a night is enough"));
 * }
 * }</pre>
 */
public final class Job implements LockOptions<Job> {
    private final Client client;
    private final String name;
    private final Duration period;
    private final Instant at;
    private final Map<String, Object> options;

    Job(Client client, String name, Duration period, Instant at, Map<String, Object> options) {
        this.client = client;
        this.name = name;
        this.period = period;
        this.at = at;
        this.options = options;
    }

    @Override
    public Job option(String name, Object value) {
        return new Job(client, this.name, period, at, Options.with(options, name, value));
    }

    /**
     * Names the run by this instant of the scheduler's own, instead of the multiple of the period that is nearest to the
     * store's clock.
     */
    public Job at(Instant instant) {
        return new Job(client, name, period, instant, options);
    }

    /** The name. */
    public String name() {
        return name;
    }

    /** Starts the run that is due; empty if that was started before, by whomever, or the last one still lasts. */
    public Optional<Run> start() {
        return starting().get();
    }

    /** As {@link #start}, as a future. To cancel it takes a run that was started back, as if nobody had asked. */
    public CompletableFuture<Optional<Run>> startAsync() {
        return starting().async();
    }

    private Request<Optional<Run>> starting() {
        Map<String, Object> operation = new LinkedHashMap<>();
        operation.put("op", "start_job");
        operation.put("name", name);
        operation.put("period", period);
        operation.put("at", at == null ? null : Duration.between(Instant.EPOCH, at));
        operation.put("options", options);
        return Request.of(client, operation,
            granted -> Optional.ofNullable(granted).map(run -> new Run(client, name, Shape.map(run))),
            run -> run.ifPresent(Run::decline));
    }

    /**
     * Runs {@code body} if a run is due, and marks the run as succeeded, or as failed if the body throws.
     *
     * @param <X> what the body throws
     * @return whether a run was due
     * @throws X if the body does
     * @throws LockLostException if the run was lost before the body's end; suppressed if the body has thrown itself
     */
    public <X extends Exception> boolean withRun(Body<X> body) throws X {
        Optional<Run> due = start();
        if (due.isEmpty()) {
            return false;
        }
        try (Run run = due.get()) {
            body.run(run);
            run.succeed().check();
        }
        return true;
    }

    /**
     * What a run does.
     *
     * @param <X> what it throws
     */
    @FunctionalInterface
    public interface Body<X extends Exception> {
        /** Does what has to be done. */
        void run(Run run) throws X;
    }

    /** The last run, as the store remembers it. */
    public Optional<JobState> inspect() {
        return inspection().get();
    }

    /** As {@link #inspect}, as a future. */
    public CompletableFuture<Optional<JobState>> inspectAsync() {
        return inspection().async();
    }

    private Request<Optional<JobState>> inspection() {
        return Request.of(client, Map.of("op", "inspect_job", "name", name, "period", period), JobState::of);
    }
}
