// A node of a fleet that writes a report: of all nodes, one writes it in each period. The same as scheduled_job.rs, in Kotlin;
// their nodes are one fleet.
//
//   --name node-1 --period 10 --for 60
//
// `--url` is the store, by default a SQLite file in this folder. Each run appends a line to `--output`: its instant in
// milliseconds since 1970, its token, the node. `--work` is how long a run takes. All times are seconds.

import io.github.fencelock.FencelockException
import io.github.fencelock.Run
import io.github.fencelock.kotlin.awaitConnect
import io.github.fencelock.kotlin.job
import io.github.fencelock.kotlin.ttl
import io.github.fencelock.kotlin.useSuspending
import io.github.fencelock.kotlin.withRunSuspending
import java.io.IOException
import java.nio.file.Files
import java.nio.file.Path
import java.nio.file.StandardOpenOption.APPEND
import java.nio.file.StandardOpenOption.CREATE
import kotlin.time.Duration.Companion.seconds
import kotlin.time.TimeSource
import kotlinx.coroutines.delay
import kotlinx.coroutines.runBlocking

fun main(words: Array<String>): Unit = runBlocking {
    val asked = words.toList().chunked(2).associate { (name, value) -> name to value }
    fun time(name: String, default: Int) = (asked[name]?.toDouble() ?: default.toDouble()).seconds
    val node = asked["--name"] ?: "node-${ProcessHandle.current().pid()}"
    val (period, part, work) = listOf(time("--period", 10), time("--for", 60), time("--work", 0))
    val output = Path.of(asked["--output"] ?: "runs.txt")

    /** The run: a line in the output, and what it takes besides. */
    suspend fun report(run: Run) {
        // In one write, so that lines of several nodes never mix.
        Files.writeString(output, "${run.instant().toEpochMilli()} ${run.token()} $node\n", CREATE, APPEND)
        delay(work)
    }

    awaitConnect(asked["--url"] ?: "sqlite:jobs.db").useSuspending { client ->
        // A run that has died counts as dead after this time: well before the next one is due.
        val ttl = minOf(30.seconds, period / 4)
        val job = client.job("fencelock-example:report", period).ttl(ttl).info(node)
        println("$node takes part")

        val end = TimeSource.Monotonic.markNow() + part
        var runs = 0
        while (end.hasNotPassedNow()) {
            try {
                // False: another node runs it, or it was run in this period.
                if (job.withRunSuspending { run -> report(run) }) runs++
            } catch (error: FencelockException) {
                // The run was lost, or the store is away. The next one is due all the same.
                System.err.println("$node: $error")
            } catch (error: IOException) {
                System.err.println("$node: $error")
            }
            // The store's clock says when a run is due, so no node has to know: it only asks often enough.
            delay(period / 10)
        }
        println("$node had $runs runs")
    }
}
