package io.github.fencelock;

import java.lang.System.Logger.Level;
import java.lang.ref.Cleaner;
import java.util.concurrent.atomic.AtomicBoolean;

/** The cleanup for a handle that is collected before anybody has given it back. */
final class Leftover implements Runnable {
    private static final Cleaner CLEANER = Cleaner.create(work -> Attendant.of(work, "fencelock-cleaner"));

    private final Runnable undo;
    private final Leftover above;
    private volatile String complaint;
    private final AtomicBoolean settled = new AtomicBoolean();
    private Cleaner.Cleanable cleanable;

    private Leftover(Runnable undo, Leftover above, String complaint) {
        this.undo = undo;
        this.above = above;
        this.complaint = complaint;
    }

    /** {@code undo} must not refer to the handle; without a complaint it is done silently. */
    static Leftover of(Object handle, Runnable undo, String complaint) {
        return of(handle, undo, null, complaint);
    }

    /** The same for a part of a handle: nobody is at fault either if that was given back. */
    static Leftover of(Object handle, Runnable undo, Leftover above, String complaint) {
        Leftover leftover = new Leftover(undo, above, complaint);
        leftover.cleanable = CLEANER.register(handle, leftover);
        return leftover;
    }

    /** The handle is given back: nothing is left. Whether it was not before. */
    boolean settle() {
        boolean first = settled.compareAndSet(false, true);
        cleanable.clean();
        return first;
    }

    boolean settled() {
        return settled.get();
    }

    /** Drops the complaint: the cleanup is then silent, since nobody is at fault. */
    void excuse() {
        complaint = null;
    }

    @Override
    public void run() {
        if (settled.get()) {
            return;
        }
        if (complaint != null && (above == null || above.complaint != null)) {
            // What is left is given back whatever the program's logger does.
            Callbacks.log(Level.WARNING, complaint, null);
        }
        undo.run();
    }
}
