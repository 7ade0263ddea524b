package io.github.fencelock;

import java.util.Map;
import java.util.Optional;
import java.util.function.Consumer;

/**
 * Options of a client, and the defaults of its locks. Immutable: every option gives another one. A wrong one is told by the
 * connect.
 *
 * <pre>{@code
 * ClientOptions options = new ClientOptions().ttl(Duration.ofSeconds(10)).app("billing");
 * try (Client client = Fencelock.connect("memory:", options)) {
 *     assert client.lock("orders:42").tryAcquire().isPresent();
 * }
 * }</pre>
 */
public final class ClientOptions implements LockOptions<ClientOptions>, ElectionOptions<ClientOptions>,
        JobOptions<ClientOptions>, VersionOptions<ClientOptions>, StoreOptions<ClientOptions> {
    private final Map<String, Object> given;
    private final String app;
    private final String language;
    private final Consumer<Event> listener;

    /** Nothing but defaults. */
    public ClientOptions() {
        this(Map.of(), program(), "java", null);
    }

    private ClientOptions(Map<String, Object> given, String app, String language, Consumer<Event> listener) {
        this.given = given;
        this.app = app;
        this.language = language;
        this.listener = listener;
    }

    /** The main class or jar of this process. */
    private static String program() {
        String command = System.getProperty("sun.java.command", "java").split(" ")[0];
        return command.substring(command.lastIndexOf('/') + 1);
    }

    @Override
    public ClientOptions option(String name, Object value) {
        return new ClientOptions(Options.with(given, name, value), app, language, listener);
    }

    /** Sets the application that people who inspect a lock see; by default the main class or jar of this process. */
    public ClientOptions app(String app) {
        return new ClientOptions(given, app, language, listener);
    }

    /** Sets the language that people who inspect a lock see; {@code java} by default. For other languages over this one. */
    public ClientOptions language(String language) {
        return new ClientOptions(given, app, language, listener);
    }

    /** Calls {@code listener} with every event of the client's locks, on a thread of fencelock's callbacks. */
    public ClientOptions onEvent(Consumer<Event> listener) {
        return new ClientOptions(given, app, language, listener);
    }

    Map<String, Object> given() {
        return given;
    }

    String app() {
        return app;
    }

    String language() {
        return language;
    }

    Optional<Consumer<Event>> listener() {
        return Optional.ofNullable(listener);
    }
}
