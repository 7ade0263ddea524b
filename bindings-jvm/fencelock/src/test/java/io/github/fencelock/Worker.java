package io.github.fencelock;

import java.time.Duration;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;

/**
 * A program that works under a lock while its JVM ends: {@code Worker URL NAME how end}. It says when it has worked, as long as its
 * guard is held, and when the last of its hooks has ended.
 */
public final class Worker {
    /** Longer than the lease, which has to be renewed meanwhile. */
    private static final Duration WORK = Duration.ofMillis(3_500);
    private static final Duration TTL = Duration.ofSeconds(3);

    private Worker() {}

    /** Works as the third word says, ends as the fourth says; until it is told to end by others without one. */
    public static void main(String[] words) throws Exception {
        String url = words[0];
        String name = words[1];
        switch (words[2]) {
            case "join" -> {
                Thread worker = working(url, name);
                hook(worker::join);
            }
            case "pool" -> {
                ExecutorService pool = Executors.newSingleThreadExecutor(Worker::daemon);
                Guard guard = held(url, name);
                pool.execute(() -> work(guard));
                hook(() -> {
                    pool.shutdown();
                    pool.awaitTermination(1, TimeUnit.MINUTES);
                });
            }
            case "alone" -> {
                working(url, name);
                hook(() -> Thread.sleep(1_000));
            }
            case "first" -> hook(() -> work(held(url, name)));
            case "halt" -> {
                working(url, name);
                hook(() -> Thread.sleep(60_000));
                hook(() -> {
                    Thread.sleep(1_000);
                    said("ended");
                    Runtime.getRuntime().halt(0);
                });
            }
            case "close" -> {
                Guard guard = held(url, name);
                hook(guard.client::close);
                Runtime.getRuntime().addShutdownHook(new Thread(() -> quietly(() -> Thread.sleep(2_000))));
            }
            default -> throw new IllegalArgumentException(words[2]);
        }
        System.out.println("begun");
        switch (words[3]) {
            case "exit" -> System.exit(0);
            case "return" -> {
                // All that works is a daemon.
            }
            default -> Thread.sleep(60_000);
        }
    }

    private static Guard held(String url, String name) throws InterruptedException {
        Client client = Fencelock.connect(url);
        // What nobody gives back is given back in the end.
        client.lock(name + "/left").ttl(TTL).acquire();
        return client.lock(name).ttl(TTL).acquire();
    }

    private static Thread working(String url, String name) throws InterruptedException {
        Guard guard = held(url, name);
        Thread worker = daemon(() -> work(guard));
        worker.start();
        return worker;
    }

    private static Thread daemon(Runnable work) {
        Thread thread = new Thread(work);
        thread.setDaemon(true);
        return thread;
    }

    private static void work(Guard guard) {
        long end = System.nanoTime() + WORK.toNanos();
        while (System.nanoTime() < end) {
            guard.check();
            said("worked");
            quietly(() -> Thread.sleep(5));
        }
        guard.check();
        said("done");
        guard.close();
    }

    /** The work of a hook. */
    private interface Act {
        void act() throws InterruptedException;
    }

    private static void hook(Act act) {
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            quietly(act);
            said("ended");
        }));
    }

    private static void quietly(Act act) {
        try {
            act.act();
        } catch (InterruptedException unexpected) {
            throw new IllegalStateException(unexpected);
        }
    }

    /** By a clock that all processes share. */
    private static void said(String what) {
        System.out.println(what + " " + System.nanoTime());
    }
}
