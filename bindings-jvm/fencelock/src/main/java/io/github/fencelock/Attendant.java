package io.github.fencelock;

import java.security.AccessController;
import java.security.PrivilegedAction;

/** A thread of our own, which keeps nothing of who happened to be the first to need it: applications come and go beside it. */
final class Attendant {
    private Attendant() {}

    /** A daemon, not started yet. */
    @SuppressWarnings("removal")
    static Thread of(Runnable work, String name) {
        // Before Java 24 a thread keeps the classes of all who stand on the stack where it is made; in here that is us alone.
        Thread thread = AccessController.doPrivileged((PrivilegedAction<Thread>) () -> new Thread(null, work, name, 0, false));
        thread.setContextClassLoader(Attendant.class.getClassLoader());
        thread.setDaemon(true);
        return thread;
    }
}
