package io.github.fencelock;

/**
 * The answer of {@link Job#start}: a {@link Run}, or {@link Skipped} with the reason there is none.
 *
 * <pre>{@code
 * if (job.start() instanceof Run run) {
 *     try (run) {
 *         cleanUp(run.token());
 *         run.succeed();
 *     }
 * }
 * }</pre>
 */
public sealed interface Start permits Run, Skipped {}
