package io.github.fencelock;

import java.util.HashMap;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.OptionalLong;

/** The leader of an {@link Election}. */
public final class Leader {
    private final OptionalLong token;
    /** As it lies on the store: whether two are the same goes by this. */
    private final String said;

    private Leader(OptionalLong token, String said) {
        this.token = token;
        this.said = said;
    }

    static Optional<Leader> of(Object seen) {
        return Optional.ofNullable(seen).map(Shape::map)
            .map(leader -> new Leader(Shape.optionalNumber(leader.get("token")), (String) leader.get("info")));
    }

    /** As the core told it. */
    Map<String, Object> told() {
        Map<String, Object> told = new HashMap<>();
        told.put("token", token.isPresent() ? token.getAsLong() : null);
        told.put("info", said);
        return told;
    }

    /** Its fencing token; empty if it is not fencelock's. */
    public OptionalLong token() {
        return token;
    }

    /** The information it gave about itself: {@code host}, {@code pid}, {@code app}, {@code language} and the option {@code info}. */
    public Map<String, Object> info() {
        return Shape.info(said);
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof Leader leader && token.equals(leader.token) && said.equals(leader.said);
    }

    @Override
    public int hashCode() {
        return Objects.hash(token, said);
    }

    @Override
    public String toString() {
        return "Leader(" + (token.isPresent() ? "token " + token.getAsLong() : "foreign") + ")";
    }
}
