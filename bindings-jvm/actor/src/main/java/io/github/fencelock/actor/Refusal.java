package io.github.fencelock.actor;

import io.github.fencelock.FencelockException;
import java.util.Map;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletionException;

/** A refusal by the actor itself; also gives every exception the form that the protocol has for it. */
public final class Refusal extends RuntimeException {
    private static final long serialVersionUID = 1;

    private final String code;

    /** Refuses a request. */
    public Refusal(String code, String message) {
        super(message);
        this.code = code;
    }

    static Map<String, Object> of(Throwable error) {
        if (error instanceof CompletionException && error.getCause() != null) {
            return of(error.getCause());
        }
        if (error instanceof FencelockException known) {
            return refusal(known.code().toString(), known.getMessage(), known.retryable(), known.fields());
        }
        if (error instanceof Refusal refusal) {
            return refusal(refusal.code, refusal.getMessage(), false, Map.of());
        }
        if (error instanceof CancellationException || error instanceof InterruptedException) {
            return refusal("cancelled", "the caller gave this operation up", false, Map.of());
        }
        return refusal("internal", "the actor itself has failed: " + error, false, Map.of());
    }

    private static Map<String, Object> refusal(
        String code, String message, boolean retryable, Map<String, String> fields) {
        return Map.of("code", code, "message", message, "retryable", retryable, "fields", fields);
    }
}
