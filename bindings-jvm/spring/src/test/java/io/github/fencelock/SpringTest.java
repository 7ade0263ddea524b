package io.github.fencelock;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** While an application of Spring Boot ends gracefully, its requests work on under their locks. */
@Tag("full")
final class SpringTest {
    private static String after(BufferedReader out, String word) throws IOException {
        String line = out.readLine();
        while (line != null && !line.startsWith(word)) {
            System.out.println(line);
            line = out.readLine();
        }
        assertTrue(line != null, "it has ended without " + word);
        return line.substring(word.length()).trim();
    }

    @ParameterizedTest
    @CsvSource({"redis, lock, bean", "redis, lock, static", "sqlite, lock, static", "redis, job, bean", "redis, job, static"})
    void aRequestEndsUnderItsLock(String store, String what, String owner) throws Exception {
        String url = store.equals("redis") ? Stores.redis().url() : Stores.sqlite();
        String name = Stores.name();
        Process process = Witness.program("-Xmx256m", "-Dtest.url=" + url, "-Dtest.name=" + name, "-Dtest.client=" + owner,
            SpringApplicationAtWork.class.getName()).redirectErrorStream(true).start();
        try (Client client = Fencelock.connect(url);
             BufferedReader out = new BufferedReader(new InputStreamReader(process.getInputStream()))) {
            URI request = URI.create("http://127.0.0.1:" + after(out, "port ") + "/" + what);
            CompletableFuture<HttpResponse<String>> answer = HttpClient.newHttpClient().sendAsync(
                HttpRequest.newBuilder(request).build(), HttpResponse.BodyHandlers.ofString());
            after(out, "working");
            CompletableFuture<Long> granted = what.equals("lock") ? Witness.granted(client, name) : null;
            process.toHandle().destroy();
            Job job = client.job(name, Duration.ofDays(1));
            while (what.equals("job") && !answer.isDone()) {
                assertInstanceOf(Skipped.class, job.start(), "the job runs twice");
            }
            long worked = Long.parseLong(after(out, "worked "));
            HttpResponse<String> answered = answer.get(Wait.PATIENCE.toSeconds(), TimeUnit.SECONDS);
            assertEquals("200 done", answered.statusCode() + " " + answered.body());
            out.lines().forEach(System.out::println);
            assertTrue(process.waitFor(Wait.PATIENCE.toSeconds(), TimeUnit.SECONDS), "it hangs");
            assertEquals(143, process.exitValue());
            if (what.equals("lock")) {
                long freed = granted.get(Wait.PATIENCE.toSeconds(), TimeUnit.SECONDS) - worked;
                assertTrue(freed >= 0, () -> "granted " + Duration.ofNanos(-freed) + " before it was worked");
                assertTrue(freed <= Witness.PARTING.toNanos(), () -> "granted only " + Duration.ofNanos(freed) + " later");
            } else {
                assertInstanceOf(Skipped.class, job.start(), "the job runs again");
                assertEquals(JobState.Status.SUCCEEDED, job.inspect().orElseThrow().status());
            }
        } finally {
            process.destroyForcibly();
        }
    }
}
