package io.github.fencelock;

/** The core's functions. None but {@link #drain} waits for anything. */
final class Natives {
    static {
        NativeLibrary.require();
    }

    private Natives() {}

    /** Begins to connect; completes with the client's number. */
    static native long connect(byte[] connection);

    /** Sets an operation off and answers its number. */
    static native long submit(long client, byte[] operation);

    /** Gives an operation up; it completes all the same. */
    static native void abort(long operation);

    /** Waits for news: for {@link Drain} alone. */
    static native byte[] drain();

    static native boolean isHeld(long client, long guard);

    /** In milliseconds. */
    static native double remaining(long client, long guard);

    /** The error to raise, or null. */
    static native byte[] check(long client, long guard);

    /** Gives a guard back without waiting. */
    static native void forget(long client, long guard);

    /** Takes a grant back that reached nobody. */
    static native void decline(long client, long guard);

    static native long openScope(long client);

    static native void closeScope(long client, long scope);

    static native byte[] load(long client);

    static native byte[] guarantees(long client);

    /** The table of options. */
    static native byte[] table();

    /** A value from its JSON; null for what is none. */
    static native byte[] parse(byte[] json);

    /** Forgets a client, with all it has. */
    static native void drop(long client);

    /** The JVM has begun to end: what is held is given back when all its hooks have ended. */
    static native void leave();
}
