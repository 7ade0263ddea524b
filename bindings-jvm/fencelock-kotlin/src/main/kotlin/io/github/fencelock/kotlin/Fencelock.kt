package io.github.fencelock.kotlin

import io.github.fencelock.Event
import io.github.fencelock.ClientOptions as JavaClientOptions
import io.github.fencelock.Fencelock as JavaFencelock

/**
 * Locks between processes and machines: every grant carries a fencing token, every guard knows how long it may be relied on,
 * and nobody who gives up or is cancelled leaves anything behind.
 *
 * Errors are those of the Java package, [io.github.fencelock.FencelockException] and its sealed family. What is looked at
 * ([io.github.fencelock.LockState] and the like) is too.
 *
 * @sample io.github.fencelock.kotlin.Samples.fiveLines
 */
public object Fencelock {
    /**
     * Connects to the store a URL names: `memory:` (this process), `sqlite:locks.db` (this machine), `redis://host:6379`,
     * `etcd://a,b,c`, `zookeeper://a,b,c/locks`, `postgres://user@host/database`. Options stand in the query,
     * `redis://host?ttl=10s&fair=false`; those given here outweigh them.
     */
    public suspend fun connect(url: String, options: ClientOptions = ClientOptions()): Client =
        Client(JavaFencelock.connectAsync(url, options.java).await { unheard -> unheard.closeAsync() })
}

/**
 * Options of a client, and the defaults of its locks. Immutable: every option gives another one. A wrong one is told by the
 * connect.
 *
 * @sample io.github.fencelock.kotlin.Samples.options
 */
public class ClientOptions private constructor(internal val java: JavaClientOptions) :
    LockOptions<ClientOptions>,
    StoreOptions<ClientOptions> {
    /** Nothing but defaults. */
    public constructor() : this(JavaClientOptions().language("kotlin"))

    override fun option(name: String, value: Any?): ClientOptions = ClientOptions(java.option(name, plain(value)))

    /** What people who inspect see as the application; by default the main class or jar of this process. */
    public fun app(app: String): ClientOptions = ClientOptions(java.app(app))

    /** Calls [listener] with every event of the client's locks, on a thread of fencelock's callbacks. */
    public fun onEvent(listener: (Event) -> Unit): ClientOptions = ClientOptions(java.onEvent(listener))
}
