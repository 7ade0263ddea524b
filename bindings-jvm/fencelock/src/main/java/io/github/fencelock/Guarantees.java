package io.github.fencelock;

import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * What a store is able to do.
 *
 * @param store its name: {@code redis}, {@code sqlite}, {@code memory}
 * @param fence how far the order of tokens reaches: {@code durable} or {@code clock_bounded}
 * @param dialects dialects it speaks beside its own layout
 * @param foreignHolders whether holders that are not fencelock's may stand on it
 * @param unordered why it cannot serve waiters of different clients in order, nor count permits, if it cannot
 * @param guarantees what this store and configuration survive
 */
public record Guarantees(
    String store, String fence, List<String> dialects, boolean foreignHolders, Optional<String> unordered,
    List<Guarantee> guarantees) {

    /**
     * What becomes of the promises when something fails.
     *
     * @param when what fails
     * @param then what then holds, and what covers the rest
     */
    public record Guarantee(String when, String then) {}

    static Guarantees of(Map<String, Object> seen) {
        return new Guarantees(
            (String) seen.get("store"),
            (String) seen.get("fence"),
            Shape.texts(seen.get("dialects")),
            (Boolean) seen.get("foreign_holders"),
            Optional.ofNullable((String) seen.get("unordered")),
            Shape.list(seen.get("guarantees")).stream().map(Shape::map)
                .map(row -> new Guarantee((String) row.get("when"), (String) row.get("then"))).toList());
    }
}
