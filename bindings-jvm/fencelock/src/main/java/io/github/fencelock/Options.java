package io.github.fencelock;

import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;

/** Options by name, in the order they were given; the core reads them. */
final class Options {
    private Options() {}

    static Map<String, Object> with(Map<String, Object> options, String name, Object value) {
        Map<String, Object> changed = new LinkedHashMap<>(options);
        changed.put(name, value);
        return Collections.unmodifiableMap(changed);
    }
}
