package io.github.fencelock;

import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Function;

/** Fields that the core has reported of something, by name. Two of one class with equal fields are equal. */
abstract class Seen {
    final Map<String, Object> fields;

    Seen(Map<String, Object> fields) {
        this.fields = fields;
    }

    final Object field(String name) {
        return fields.get(name);
    }

    final String text(String name) {
        return (String) fields.get(name);
    }

    final Optional<String> optionalText(String name) {
        return Optional.ofNullable(text(name));
    }

    final long number(String name) {
        return Shape.number(fields.get(name));
    }

    final <T> List<T> list(String name, Function<Map<String, Object>, T> one) {
        return Shape.list(fields.get(name)).stream().map(Shape::map).map(one).toList();
    }

    @Override
    public final boolean equals(Object other) {
        return other != null && other.getClass() == getClass() && ((Seen) other).fields.equals(fields);
    }

    @Override
    public final int hashCode() {
        return fields.hashCode();
    }

    /** Its fields. */
    @Override
    public String toString() {
        return getClass().getSimpleName() + fields;
    }
}
