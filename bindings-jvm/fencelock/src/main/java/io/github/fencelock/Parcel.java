package io.github.fencelock;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Values on their way to the core and back: the shapes of JSON as tagged bytes. The core's {@code parcel.rs} is the other
 * side, and says what the tags mean.
 */
final class Parcel {
    /** JSON's own depth in the core. */
    private static final int DEPTH = 127;

    private ByteBuffer bytes = ByteBuffer.allocate(128);

    private Parcel() {}

    /** Packs a value; durations are milliseconds. */
    static byte[] write(Object value) {
        Parcel parcel = new Parcel();
        parcel.add(value, DEPTH);
        return Arrays.copyOf(parcel.bytes.array(), parcel.bytes.position());
    }

    private ByteBuffer room(int length) {
        if (bytes.remaining() < length) {
            int grown = Math.max(bytes.capacity() * 2, bytes.position() + length);
            bytes = ByteBuffer.allocate(grown).put(bytes.flip());
        }
        return bytes;
    }

    private void add(Object value, int depth) {
        if (value == null) {
            room(1).put((byte) 'n');
        } else if (value instanceof Boolean truth) {
            room(1).put((byte) (truth ? 't' : 'f'));
        } else if (value instanceof CharSequence text) {
            room(1).put((byte) 's');
            addText(text.toString());
        } else if (value instanceof Long || value instanceof Integer || value instanceof Short || value instanceof Byte) {
            room(9).put((byte) 'i').putLong(((Number) value).longValue());
        } else if (value instanceof Number number) {
            addNumber(number);
        } else if (value instanceof Duration time) {
            addTime(time);
        } else if (value instanceof Map<?, ?> map) {
            room(5).put((byte) 'm').putInt(map.size());
            map.forEach((name, one) -> {
                addText(String.valueOf(name));
                add(one, deeper(depth));
            });
        } else if (value instanceof Collection<?> list) {
            room(5).put((byte) 'l').putInt(list.size());
            list.forEach(one -> add(one, deeper(depth)));
        } else {
            throw invalid("a " + value.getClass().getName() + " cannot be told to the store; give text, numbers, booleans, "
                + "durations, lists or maps of them");
        }
    }

    private static int deeper(int depth) {
        if (depth == 0) {
            throw invalid("a value must not be nested deeper than " + DEPTH);
        }
        return depth - 1;
    }

    private void addNumber(Number number) {
        if (number instanceof BigInteger whole && whole.bitLength() < 64) {
            room(9).put((byte) 'i').putLong(whole.longValue());
        } else if (number instanceof BigInteger whole && whole.signum() > 0 && whole.bitLength() == 64) {
            room(9).put((byte) 'u').putLong(whole.longValue());
        } else if (number instanceof BigDecimal || Double.isFinite(number.doubleValue())) {
            room(9).put((byte) 'd').putDouble(number.doubleValue());
        } else {
            throw invalid(number + " is no number that can be told to the store");
        }
    }

    private void addTime(Duration time) {
        boolean whole = time.getNano() % 1_000_000 == 0 && Math.abs(time.getSeconds()) < Long.MAX_VALUE / 1_000;
        if (whole) {
            room(9).put((byte) 'i').putLong(time.toMillis());
        } else {
            room(9).put((byte) 'd').putDouble(time.getSeconds() * 1e3 + time.getNano() / 1e6);
        }
    }

    private void addText(String text) {
        byte[] encoded = text.getBytes(StandardCharsets.UTF_8);
        room(4 + encoded.length).putInt(encoded.length).put(encoded);
    }

    private static InvalidArgumentException invalid(String message) {
        return new InvalidArgumentException(message, false, Map.of("argument", "value"));
    }

    /** Unpacks a value. */
    static Object read(byte[] bytes) {
        return read(ByteBuffer.wrap(bytes));
    }

    /** Unpacks the next value. */
    static Object read(ByteBuffer from) {
        byte tag = from.get();
        return switch (tag) {
            case 'n' -> null;
            case 'f' -> false;
            case 't' -> true;
            case 'i' -> from.getLong();
            case 'u' -> new BigInteger(Long.toUnsignedString(from.getLong()));
            case 'd' -> from.getDouble();
            case 's' -> readText(from);
            case 'l' -> readList(from);
            case 'm' -> readMap(from);
            default -> throw new InternalException("the core sent the tag " + tag);
        };
    }

    private static List<Object> readList(ByteBuffer from) {
        int count = from.getInt();
        List<Object> list = new ArrayList<>(count);
        for (int number = 0; number < count; number++) {
            list.add(read(from));
        }
        return list;
    }

    private static Map<String, Object> readMap(ByteBuffer from) {
        Map<String, Object> map = new LinkedHashMap<>();
        for (int left = from.getInt(); left > 0; left--) {
            map.put(readText(from), read(from));
        }
        return map;
    }

    private static String readText(ByteBuffer from) {
        int length = from.getInt();
        String text = new String(from.array(), from.position(), length, StandardCharsets.UTF_8);
        from.position(from.position() + length);
        return text;
    }
}
