package io.github.fencelock;

import java.util.List;
import java.util.Map;

/**
 * Several mutexes that are acquired as one, made by {@link Client#all}: all or nothing. However the names are ordered, no two
 * callers ever wait for each other.
 *
 * <pre>{@code
 * try (Client client = Fencelock.connect("memory:");
 *      Guard guard = client.all("account:7", "account:3").acquire()) {
 *     assert guard.tokens().keySet().equals(Set.of("account:3", "account:7"));
 * }
 * }</pre>
 */
public final class All extends Acquirable<All> implements LockOptions<All> {
    private final List<String> names;

    All(Client client, List<String> names, Map<String, Object> options) {
        super(client, options);
        this.names = names;
    }

    @Override
    All with(Map<String, Object> options) {
        return new All(client, names, options);
    }

    @Override
    Map<String, Object> asking(boolean once) {
        return Map.of("op", once ? "try_acquire_all" : "acquire_all", "names", names);
    }

    @Override
    String shown() {
        return String.join(", ", names.stream().sorted().toList());
    }
}
