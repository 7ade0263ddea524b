package io.github.fencelock;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;

/** A program that holds locks while it ends: {@code Holder URL PREFIX CLIENTS EACH how}; {@code Holder idle} only waits. */
public final class Holder {
    private static final List<Guard> HELD = new ArrayList<>();

    private Holder() {}

    /** Acquires what a {@link Witness} waits for, says so, and ends as the last word says, after it has said when. */
    public static void main(String[] words) throws Exception {
        if (words[0].equals("idle")) {
            Runtime.getRuntime().addShutdownHook(new Thread(Holder::parting));
            System.out.println("waits");
            new CountDownLatch(1).await();
        }
        int clients = Integer.parseInt(words[2]);
        int each = Integer.parseInt(words[3]);
        for (int number = 0; number < clients * each; number += each) {
            Client client = Fencelock.connect(words[0]);
            for (int kind = number; kind < number + each; kind++) {
                HELD.add(Witness.asking(client, words[1], kind).join());
            }
            client.lock(words[1] + number).acquireAsync();
            if (words[4].equals("stuck")) {
                // Another thread waits for ever; it is no daemon.
                new Thread(() -> client.lock(words[1] + "0").asLock().lock()).start();
            }
        }
        part(HELD.size(), words[4]);
    }

    /** Says what is held, ends as the word says, and tells when that has begun by a clock that all processes share. */
    public static void part(int held, String how) throws Exception {
        boolean terminated = how.equals("wait") || how.equals("queue");
        if (terminated) {
            Runtime.getRuntime().addShutdownHook(new Thread(Holder::parting));
        }
        System.out.println("held " + held);
        if (terminated) {
            if (how.equals("queue")) {
                HELD.get(0).client.lock(HELD.get(0).name()).acquire();
            }
            new CountDownLatch(1).await();
        }
        if (how.equals("late")) {
            Runtime.getRuntime().addShutdownHook(new Thread(Holder::askLate));
        } else {
            parting();
        }
        switch (how) {
            case "exit", "stuck", "late" -> System.exit(3);
            case "halt" -> Runtime.getRuntime().halt(4);
            case "throw" -> throw new IllegalStateException("on purpose");
            default -> {
                // Returns from main with everything held.
            }
        }
    }

    /** While the JVM ends somebody still asks something, and is answered: only then is anything released. */
    private static void askLate() {
        Guard last = HELD.get(HELD.size() - 1);
        for (int number = 0; number < 100; number++) {
            last.client.lock(last.name()).inspect();
        }
        parting();
    }

    private static void parting() {
        System.out.println("parting " + System.nanoTime());
        System.out.flush();
    }
}
