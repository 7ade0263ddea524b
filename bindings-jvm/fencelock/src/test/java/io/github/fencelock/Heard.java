package io.github.fencelock;

import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.Supplier;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;

/** The log messages of the package meanwhile, kept from all other handlers. */
public final class Heard implements AutoCloseable {
    private static final Logger LOGGER = Logger.getLogger("fencelock");

    private final List<String> messages = new CopyOnWriteArrayList<>();
    private final Supplier<RuntimeException> failure;
    private final Handler handler = new Handler() {
        @Override
        public void publish(LogRecord told) {
            messages.add(told.getMessage());
            RuntimeException thrown = failure.get();
            if (thrown != null) {
                throw thrown;
            }
        }

        @Override
        public void flush() {}

        @Override
        public void close() {}
    };

    /** Listens from now on. */
    public Heard() {
        this(() -> null);
    }

    /** The same, and throws this at whoever logs. */
    public Heard(Supplier<RuntimeException> failure) {
        this.failure = failure;
        LOGGER.addHandler(handler);
        LOGGER.setUseParentHandlers(false);
    }

    /** So far. */
    public List<String> messages() {
        return messages;
    }

    @Override
    public void close() {
        LOGGER.removeHandler(handler);
        LOGGER.setUseParentHandlers(true);
    }
}
