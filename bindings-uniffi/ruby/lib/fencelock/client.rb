# frozen_string_literal: true

module Fencelock
  # A connection to one store, for all threads. In the child of a fork it raises ClosedError: connect again there.
  class Client
    @clients = ObjectSpace::WeakMap.new

    class << self
      attr_reader :clients
    end

    # Gives back what this process holds, for at most a second; after that the leases end.
    at_exit do
      closing = Client.clients.keys.select(&:here?).map { |client| Thread.new { client.close } }
      soon = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 1
      closing.each { |thread| thread.join([soon - Process.clock_gettime(Process::CLOCK_MONOTONIC), 0].max) }
    end

    def initialize(url, **options)
      @native = FencelockNative::Client.connect(url.to_s, Native.options(options), 'ruby')
      @process = Process.pid
      Client.clients[self] = true
    end

    # Whether this process connected it.
    def here? = @process == Process.pid

    # A mutex. With a block: acquires it, yields the guard and gives it back.
    def lock(name, **options, &block) = made(:lock, name, options, &block)

    def read_lock(name, **options, &block) = made(:read_lock, name, options, &block)

    def write_lock(name, **options, &block) = made(:write_lock, name, options, &block)

    # At most `limit` holders at once.
    def semaphore(name, limit, **options, &block)
      acquired(Lock.new(@native.semaphore(name.to_s, limit.between?(0, 2**32 - 1) ? limit : 0, Native.options(options))), &block)
    end

    # Several mutexes as one: all or nothing.
    def all(names, **options, &block)
      acquired(Lock.new(@native.all(names.map(&:to_s), Native.options(options))), &block)
    end

    def scope = Scope.new(@native.scope)

    def election(name, **options) = Election.new(@native.election(name.to_s, Native.options(options)))

    # A job that is due every so many seconds, or by a cron expression.
    def job(name, every: nil, cron: nil, timezone: nil, **options)
      Job.new(@native.job(name.to_s, Native.span(every), cron, timezone, Native.options(options)))
    end

    def version(name, **options)
      Versioned.new(@native.version(name.to_s, Native.options(options)), options.fetch(:retries, 16))
    end

    # A gate on the Redis server of this client, over a connection of its own: keep it.
    def gate = Gate.new(@native.gate)

    # The names of the locks that the store knows.
    def names(prefix = '') = @native.names(prefix)

    # The guard of a hold that another process has let go of by Guard#transfer.
    def adopt(text) = Guard.new(@native.adopt(text.to_s))

    # Ends the holds of a lock, or those with this token; for holders that hang.
    def break_lock(name, reason, token: nil)
      JSON.parse(@native.break_lock(name.to_s, reason, token), symbolize_names: true)
    end

    # Asks the store for nothing and answers how many seconds that took.
    def ping = @native.ping.to_f

    def guarantees = JSON.parse(@native.guarantees, symbolize_names: true)

    # Attempts and holds, and locks of this client: all 0 at rest.
    def stats = %i[entries locks].zip(@native.stats).to_h

    def close = @native.disconnect

    private

    def made(kind, name, options, &block)
      acquired(Lock.new(@native.public_send(kind, name.to_s, Native.options(options))), &block)
    end

    def acquired(lock, &block) = block ? lock.synchronize(&block) : lock
  end
end
