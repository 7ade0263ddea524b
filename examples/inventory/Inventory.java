import io.github.fencelock.Client;
import io.github.fencelock.Fencelock;
import io.github.fencelock.Guard;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.Socket;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/**
 * The last lamps of a shop, sold by eight clerks at once: with no lock, and under a lock.
 *
 * <pre>java -cp fencelock.jar examples/inventory/Inventory.java redis://127.0.0.1 etcd://127.0.0.1</pre>
 *
 * <p>The first URL is the shop's, a Redis server. The second is the store of the locks, by default the same.
 *
 * <p>Selling is looking at the stock, taking a moment (a price, a payment), and writing it down. Whoever else looks in that
 * moment sells the same lamp again. inventory.rs tells more.
 */
public final class Inventory {
    private static final int LAMPS = 50;
    private static final int CUSTOMERS = 80;
    private static final int CLERKS = 8;
    private static final int MOMENT = 2;
    private static final String STOCK = "fencelock-example:java:stock";
    private static final String SOLD = "fencelock-example:java:sold";

    /** One clerk: a program of its own in a real shop, with its own connections. */
    private static Void clerk(String url, String store, boolean locked) throws Exception {
        try (Client locks = Fencelock.connect(store); Shop shop = new Shop(url)) {
            for (int customer = 0; customer < CUSTOMERS / CLERKS; customer++) {
                if (locked) {
                    try (Guard guard = locks.lock("fencelock-example:java:lamps").acquire()) {
                        lookAndWrite(shop);
                    }
                } else {
                    lookAndWrite(shop);
                }
            }
        }
        return null;
    }

    private static void lookAndWrite(Shop shop) throws Exception {
        int stock = Integer.parseInt(shop.command("GET", STOCK));
        if (stock < 1) {
            return;
        }
        Thread.sleep(MOMENT);
        shop.command("SET", STOCK, "" + (stock - 1));
        shop.command("INCR", SOLD);
    }

    private static int day(String url, String store, boolean locked) throws Exception {
        ExecutorService floor = Executors.newFixedThreadPool(CLERKS);
        try (Shop shop = new Shop(url)) {
            shop.command("MSET", STOCK, "" + LAMPS, SOLD, "0");
            List<Callable<Void>> clerks = new ArrayList<>();
            for (int number = 0; number < CLERKS; number++) {
                clerks.add(() -> clerk(url, store, locked));
            }
            for (Future<Void> clerk : floor.invokeAll(clerks)) {
                clerk.get();
            }
            int sold = Integer.parseInt(shop.command("GET", SOLD));
            shop.command("DEL", STOCK, SOLD);
            return sold;
        } finally {
            floor.shutdown();
        }
    }

    public static void main(String[] words) throws Exception {
        String url = words.length > 0 ? words[0] : "redis://127.0.0.1";
        String store = words.length > 1 ? words[1] : url;
        System.out.printf("%d lamps, %d customers, %d clerks%n", LAMPS, CUSTOMERS, CLERKS);
        for (boolean locked : new boolean[] {false, true}) {
            long begin = System.nanoTime();
            int sold = day(url, store, locked);
            System.out.printf("%-8s sold %3d, oversold %3d, %d ms%n",
                locked ? "lock" : "no lock", sold, Math.max(0, sold - LAMPS), (System.nanoTime() - begin) / 1_000_000);
        }
    }

    /** The shop's books, on a Redis server: as much of a client as they need. */
    private static final class Shop implements AutoCloseable {
        private final Socket socket;
        private final BufferedReader answers;

        Shop(String url) throws IOException {
            URI address = URI.create(url);
            socket = new Socket(address.getHost(), address.getPort() < 0 ? 6379 : address.getPort());
            answers = new BufferedReader(new InputStreamReader(socket.getInputStream(), StandardCharsets.UTF_8));
        }

        String command(String... words) throws IOException {
            StringBuilder request = new StringBuilder("*" + words.length + "\r\n");
            for (String word : words) {
                request.append("$").append(word.length()).append("\r\n").append(word).append("\r\n");
            }
            socket.getOutputStream().write(request.toString().getBytes(StandardCharsets.UTF_8));
            String head = answers.readLine();
            if (head.startsWith("-")) {
                throw new IOException(head);
            }
            return head.startsWith("$") ? answers.readLine() : head.substring(1);
        }

        @Override
        public void close() throws IOException {
            socket.close();
        }
    }
}
