package io.github.fencelock;

import java.nio.ByteBuffer;
import java.util.Map;

/** How an operation ended: with a value, or with what an exception is made of where it is raised. */
record Answer(boolean well, Object content) {
    static Answer read(ByteBuffer from) {
        boolean well = from.get() != 0;
        return new Answer(well, Parcel.read(from));
    }

    /** A defect that kept the true answer from arriving. */
    static Answer defect(Throwable cause) {
        return new Answer(false, Map.of("code", "internal", "message", cause.toString()));
    }

    /** The value; throws the error, with the stack of whoever looks. */
    Object value() {
        if (!well) {
            throw FencelockException.of(Shape.map(content));
        }
        return content;
    }
}
