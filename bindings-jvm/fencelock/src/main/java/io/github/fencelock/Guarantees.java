package io.github.fencelock;

import java.util.List;
import java.util.Map;
import java.util.Optional;

/** The abilities of a store, and the failures that it survives. */
public final class Guarantees extends Seen {
    Guarantees(Map<String, Object> seen) {
        super(seen);
    }

    /** The store's name: {@code redis}, {@code sqlite}, {@code memory}. */
    public String store() {
        return text("store");
    }

    /** How far the order of tokens reaches: {@code durable} or {@code clock_bounded}. */
    public String fence() {
        return text("fence");
    }

    /** The dialects it speaks beside its own layout. */
    public List<String> dialects() {
        return Shape.texts(field("dialects"));
    }

    /** Whether holders that are not fencelock's may stand on it. */
    public boolean foreignHolders() {
        return (Boolean) field("foreign_holders");
    }

    /** The reason it cannot serve waiters of different clients in order, nor count permits, if it cannot. */
    public Optional<String> unordered() {
        return optionalText("unordered");
    }

    /** The failures that this store and configuration survive. */
    public List<Guarantee> guarantees() {
        return list("guarantees", Guarantee::new);
    }

    /** The effect of one kind of failure on the promises. */
    public static final class Guarantee extends Seen {
        private Guarantee(Map<String, Object> seen) {
            super(seen);
        }

        /** The failure, in words. */
        public String when() {
            return text("when");
        }

        /** The promises that still hold then, and what covers the rest. */
        public String then() {
            return text("then");
        }
    }
}
