package io.github.fencelock;

import java.io.BufferedInputStream;
import java.io.DataInputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/** A real Redis server on a free port, that keeps nothing on disk. */
public final class RedisServer implements AutoCloseable {
    /** Of a lock's record: the counter of tokens, whom it was granted to last, tombstones, a queue of nobody. */
    private static final Pattern MAY_STAY = Pattern.compile("[chb]=.*|x[0-9a-f]{32}=.*|q=", Pattern.DOTALL);
    /** Of a job's: a run that has not ended. */
    private static final Pattern RUNS = Pattern.compile("v=.*\"status\":\"P\".*", Pattern.DOTALL);

    private final Process process;
    private final int port;

    /** Starts one and waits until it answers. */
    public RedisServer() {
        try (ServerSocket free = new ServerSocket(0)) {
            port = free.getLocalPort();
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
        String program = System.getenv().getOrDefault("FENCELOCK_REDIS_SERVER", "redis-server");
        try {
            process = new ProcessBuilder(program, "--port", "" + port, "--save", "", "--appendonly", "no",
                "--daemonize", "no", "--logfile", "/dev/null").redirectErrorStream(true).start();
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
        Wait.until("the server answers", this::answers);
    }

    private boolean answers() {
        try {
            // Somebody else's server may have taken the port before ours did.
            return command("INFO", "server").toString().contains("process_id:" + process.pid() + "\r");
        } catch (UncheckedIOException notYet) {
            return false;
        }
    }

    /** Its URL. */
    public String url() {
        return "redis://127.0.0.1:" + port;
    }

    /** A raw command as somebody else; what is answered: text (a character for each byte), a number, a list of these, or null. */
    public Object command(String... words) {
        try (Socket socket = new Socket()) {
            socket.connect(new InetSocketAddress("127.0.0.1", port), 1_000);
            StringBuilder request = new StringBuilder("*" + words.length + "\r\n");
            for (String word : words) {
                request.append("$" + word.getBytes(StandardCharsets.UTF_8).length + "\r\n" + word + "\r\n");
            }
            socket.getOutputStream().write(request.toString().getBytes(StandardCharsets.UTF_8));
            return answer(new DataInputStream(new BufferedInputStream(socket.getInputStream())));
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    private static Object answer(DataInputStream from) throws IOException {
        StringBuilder said = new StringBuilder();
        for (char next = (char) from.readUnsignedByte(); next != '\n'; next = (char) from.readUnsignedByte()) {
            said.append(next);
        }
        String line = said.substring(1, said.length() - 1);
        switch (said.charAt(0)) {
            case '+':
                return line;
            case ':':
                return Long.parseLong(line);
            case '$':
                byte[] text = new byte[Math.max(0, Integer.parseInt(line))];
                from.readFully(text);
                from.skipNBytes(line.equals("-1") ? 0 : 2);
                return line.equals("-1") ? null : new String(text, StandardCharsets.ISO_8859_1);
            case '*':
                List<Object> all = new ArrayList<>();
                for (int left = Integer.parseInt(line); left > 0; left--) {
                    all.add(answer(from));
                }
                return all;
            default:
                throw new IOException(said.toString());
        }
    }

    /** Somebody else deletes all that is stored under this name. */
    public void forget(String name) {
        texts("KEYS", "*" + name + "*").forEach(key -> command("DEL", key));
    }

    /** A command whose answer is a list of texts. */
    public List<String> texts(String... words) {
        return ((List<?>) command(words)).stream().map(String.class::cast).toList();
    }

    /**
     * The keys left under names with this prefix by holds, tickets, permits and runs. A record may stay until it ends, with the
     * counter of tokens, whom it was granted to last, and tombstones; a value stays for as long as its user wants.
     */
    public List<String> leftovers(String prefix) {
        List<String> left = new ArrayList<>();
        for (String key : texts("KEYS", "*" + prefix + "*")) {
            if (key.contains("}:version:")) {
                continue;
            }
            if (!key.startsWith("fencelock:{") || key.contains("}:held:")) {
                left.add("the hold " + key);
            } else if (command("PTTL", key).equals(-1L)) {
                left.add(key + ", which has no end");
            } else {
                boolean ofLock = key.contains("}:lock:");
                fields(key).filter(field -> ofLock ? !MAY_STAY.matcher(field).matches() : RUNS.matcher(field).matches())
                    .forEach(field -> left.add(key + " " + field.split("=")[0]));
            }
        }
        return left;
    }

    /** A record's fields, each with what it says. */
    private Stream<String> fields(String key) {
        List<String> all = texts("HGETALL", key);
        return IntStream.range(0, all.size() / 2).mapToObj(at -> all.get(2 * at) + "=" + all.get(2 * at + 1));
    }

    /** From now on it takes what it is sent and answers nothing. */
    public void standStill() {
        try {
            int code = new ProcessBuilder("kill", "-STOP", "" + process.pid()).start().waitFor();
            if (code != 0) {
                throw new IllegalStateException("`kill` ended with " + code);
            }
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    /** Ends it, even if it stands still. */
    @Override
    public void close() {
        process.destroyForcibly();
        try {
            process.waitFor(10, TimeUnit.SECONDS);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
    }
}
