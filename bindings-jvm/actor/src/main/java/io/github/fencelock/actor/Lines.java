package io.github.fencelock.actor;

import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonPrimitive;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.UncheckedIOException;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.Semaphore;
import java.util.logging.Level;
import java.util.logging.Logger;

/**
 * The lines between an actor and the conformance engine, and the one thread that reads and answers them: requests that are
 * there are taken before completions are looked at.
 */
public final class Lines {
    /** Referred to, as a level that nobody refers to is forgotten. Cases lose locks on purpose. */
    private static final Logger LOG = Logger.getLogger("fencelock");
    private static final Gson GSON = new GsonBuilder().serializeNulls().disableHtmlEscaping().create();

    private final PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
    private final Queue<Runnable> requests = new ConcurrentLinkedQueue<>();
    private final Queue<Runnable> completions = new ConcurrentLinkedQueue<>();
    private final Semaphore work = new Semaphore(0);
    private volatile boolean ended;

    /** The handler of the requests to an actor. */
    public interface Actor {
        /** Answers it, now or later. */
        void request(JsonObject request) throws Exception;

        /** Gives everything back: there are no more requests. */
        void leave();
    }

    /** Serves requests until there are no more. */
    public void serve(Actor actor) throws InterruptedException {
        LOG.setLevel(Level.OFF);
        Thread reader = new Thread(() -> read(actor), "reader");
        reader.setDaemon(true);
        reader.start();
        while (!ended) {
            work.acquire();
            Runnable next = requests.poll();
            (next == null ? completions.poll() : next).run();
        }
        actor.leave();
    }

    private void read(Actor actor) {
        try (BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8))) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                JsonObject request = GSON.fromJson(line, JsonObject.class);
                add(requests, () -> take(actor, request));
            }
        } catch (IOException broken) {
            throw new UncheckedIOException(broken);
        }
        add(requests, () -> ended = true);
    }

    private void take(Actor actor, JsonObject request) {
        try {
            actor.request(request);
        } catch (Exception error) {
            refuse(request.get("id").getAsLong(), error);
        }
    }

    private void add(Queue<Runnable> queue, Runnable turn) {
        queue.add(turn);
        work.release();
    }

    /** Has something done in the actor's own thread, after the requests that are there. */
    public void later(Runnable completion) {
        add(completions, completion);
    }

    /** Answers a request. */
    public void answer(long id, Object value) {
        Map<String, Object> answer = new LinkedHashMap<>();
        answer.put("id", id);
        answer.put("ok", value);
        say(answer);
    }

    /** Answers a request with what was thrown. */
    public void refuse(long id, Throwable error) {
        say(Map.of("id", id, "error", Refusal.of(error)));
    }

    /** Says something. */
    public void say(Map<String, Object> message) {
        out.println(GSON.toJson(message));
        out.flush();
    }

    /** The options of a request, as a program would give them: plain values by name. */
    public static Map<String, Object> options(JsonObject request) {
        Map<String, Object> options = new LinkedHashMap<>();
        if (request.has("options")) {
            request.getAsJsonObject("options").entrySet().forEach(one -> options.put(one.getKey(), plain(one.getValue())));
        }
        return options;
    }

    /** A JSON value as plain Java. */
    public static Object plain(JsonElement json) {
        if (json.isJsonNull()) {
            return null;
        }
        if (json.isJsonArray()) {
            List<Object> values = new java.util.ArrayList<>();
            json.getAsJsonArray().forEach(one -> values.add(plain(one)));
            return values;
        }
        if (json.isJsonObject()) {
            Map<String, Object> values = new LinkedHashMap<>();
            json.getAsJsonObject().entrySet().forEach(one -> values.put(one.getKey(), plain(one.getValue())));
            return values;
        }
        JsonPrimitive primitive = json.getAsJsonPrimitive();
        if (primitive.isBoolean()) {
            return primitive.getAsBoolean();
        }
        return primitive.isNumber() ? number(primitive.getAsString()) : primitive.getAsString();
    }

    private static Number number(String text) {
        if (text.chars().allMatch(letter -> letter == '-' || Character.isDigit(letter))) {
            BigInteger whole = new BigInteger(text);
            return whole.bitLength() < 64 ? (Number) whole.longValue() : whole;
        }
        return new BigDecimal(text).doubleValue();
    }
}
