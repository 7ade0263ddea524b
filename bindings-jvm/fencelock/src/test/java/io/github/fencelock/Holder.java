package io.github.fencelock;

import java.util.concurrent.CountDownLatch;

/** A program that holds locks while it ends: {@code Holder URL LOCK how}. */
public final class Holder {
    private Holder() {}

    /** Acquires, says so, and ends as the third word says. */
    public static void main(String[] words) throws Exception {
        Client client = Fencelock.connect(words[0]);
        Guard guard = client.lock(words[1]).acquire();
        client.lock(words[1]).acquireAsync();
        if (words[2].equals("stuck")) {
            // Another thread waits for ever; it is no daemon.
            new Thread(() -> client.lock(words[1]).asLock().lock()).start();
        }
        System.out.println("token " + guard.token());
        System.out.flush();
        switch (words[2]) {
            case "exit", "stuck" -> System.exit(3);
            case "halt" -> Runtime.getRuntime().halt(4);
            case "throw" -> throw new IllegalStateException("on purpose");
            case "wait" -> new CountDownLatch(1).await();
            default -> {
                // Returns from main with everything held.
            }
        }
    }
}
