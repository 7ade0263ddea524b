package io.github.fencelock;

/**
 * The answer of {@link Job#start}: a {@link Run}, or {@link Skipped} with the reason there is none.
 *
 * <pre>{@code
 * try (Client client = Fencelock.connect("memory:")) {
 *     if (client.job("nightly", Duration.ofDays(1)).start() instanceof Run run) {
 *         try (run) {
 *             System.out.println("cleaning up with token " + run.token());
 *             run.succeed();
 *         }
 *     }
 * }
 * }</pre>
 */
public sealed interface Start permits Run, Skipped {}
