package io.github.fencelock;

import java.time.Duration;
import java.time.Instant;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.function.Consumer;
import java.util.function.Function;

/**
 * A scheduled job, made by {@link Client#job}. Every process of the fleet asks for a run when its own schedule says so; one
 * of them gets it.
 *
 * <p>A run is named by its <em>scheduled instant</em>, the last multiple of the period (counted from 1970, UTC) or time of the
 * cron expression by the store's clock; a timer may fire early by a tenth of the period, 30 s at most. It starts only if its
 * instant is later than that of the last run and that one is over; with a period, half of it must also have passed since the last
 * start. A run that died is not run again, unless
 * {@code retryDead} says so: it may have done its work.
 *
 * <pre>{@code
 * try (Client client = Fencelock.connect("memory:")) {
 *     Job nightly = client.job("nightly", Duration.ofDays(1));
 *     assert nightly.withRun(run -> System.out.println("cleaning up under token " + run.token()));
 *     assert !nightly.withRun(
 *         run -> System.out.println("once a night is enough"),
 *         skipped -> System.out.println("nothing to do: " + skipped.reason()));
 * }
 * }</pre>
 */
public final class Job implements JobOptions<Job> {
    private final Client client;
    private final String name;
    private final Map<String, Object> times;
    private final Instant at;
    private final Map<String, Object> options;

    Job(Client client, String name, Map<String, Object> times, Instant at, Map<String, Object> options) {
        this.client = client;
        this.name = name;
        this.times = times;
        this.at = at;
        this.options = options;
    }

    @Override
    public Job option(String name, Object value) {
        return new Job(client, this.name, times, at, Options.with(options, name, value));
    }

    /**
     * Names the run by this instant of the scheduler's own, instead of the last one of its schedule by the store's clock. It
     * may lie ahead of that clock by half a period, or a minute.
     */
    public Job at(Instant instant) {
        return new Job(client, name, times, instant, options);
    }

    /** The name. */
    public String name() {
        return name;
    }

    /**
     * Starts the run that is due. {@link Skipped} says why there is none: the last one is in progress, this one was run, or none
     * is due.
     *
     * @throws LockLostException if the lease ended while this thread was stopped, before the call returned
     */
    public Start start() {
        return starting().get();
    }

    /** As {@link #start}, as a future. To cancel it takes a run that was started back, as if nobody had asked. */
    public CompletableFuture<Start> startAsync() {
        return starting().async();
    }

    private Request<Start> starting() {
        Map<String, Object> operation = new LinkedHashMap<>(times);
        operation.put("op", "start_job");
        operation.put("name", name);
        operation.put("at", at == null ? null : Duration.between(Instant.EPOCH, at));
        operation.put("options", options);
        Function<Object, Start> understood = answer -> {
            Map<String, Object> started = Shape.map(answer);
            Object skipped = started.get("skipped");
            return skipped == null ? new Run(client, name, started) : new Skipped(Shape.map(skipped));
        };
        return Request.of(client, operation, understood, ifRun(Guard::begin), ifRun(Guard::decline));
    }

    private static Consumer<Start> ifRun(Consumer<Run> does) {
        return start -> {
            if (start instanceof Run run) {
                does.accept(run);
            }
        };
    }

    /**
     * Runs {@code body} if a run is due, and marks the run as succeeded, or as failed if the body throws. It does not begin in a
     * run that is lost.
     *
     * @param <X> what the body throws
     * @return whether a run was due
     * @throws X if the body does
     * @throws LockLostException if the run was lost before the body's begin or end; suppressed if the body has thrown itself
     */
    public <X extends Exception> boolean withRun(Body<X> body) throws X {
        return withRun(body, skipped -> {});
    }

    /**
     * As {@link #withRun(Body)}, and calls {@code skipped} with the reason if no run was due.
     *
     * @param <X> what the body throws
     * @return whether a run was due
     * @throws X if the body does
     * @throws LockLostException if the run was lost before the body's end; suppressed if the body has thrown itself
     */
    public <X extends Exception> boolean withRun(Body<X> body, Consumer<? super Skipped> skipped) throws X {
        Objects.requireNonNull(body, "the body is null");
        Start start = start();
        if (start instanceof Skipped none) {
            skipped.accept(none);
            return false;
        }
        try (Run run = (Run) start) {
            body.run(run);
            run.succeed().check(run);
        }
        return true;
    }

    /**
     * The code of a run.
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
        return Request.of(client, Map.of("op", "inspect_job", "name", name), JobState::of);
    }
}
