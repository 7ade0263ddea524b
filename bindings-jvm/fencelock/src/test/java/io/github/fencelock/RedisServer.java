package io.github.fencelock;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** A real Redis server on a free port, that keeps nothing on disk. */
public final class RedisServer implements AutoCloseable {
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
            return command("PING").startsWith("+PONG");
        } catch (UncheckedIOException notYet) {
            return false;
        }
    }

    /** Its URL. */
    public String url() {
        return "redis://127.0.0.1:" + port;
    }

    /** A raw command as somebody else; the answer as it comes. */
    public String command(String... words) {
        try (Socket socket = new Socket()) {
            socket.connect(new InetSocketAddress("127.0.0.1", port), 1_000);
            StringBuilder request = new StringBuilder("*" + words.length + "\r\n");
            List.of(words).forEach(word -> request.append("$" + word.length() + "\r\n" + word + "\r\n"));
            socket.getOutputStream().write(request.toString().getBytes(StandardCharsets.UTF_8));
            byte[] answer = new byte[1 << 16];
            int length = socket.getInputStream().read(answer);
            return new String(answer, 0, Math.max(0, length), StandardCharsets.UTF_8);
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
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
