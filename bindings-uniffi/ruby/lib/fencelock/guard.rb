# frozen_string_literal: true

module Fencelock
  # The local proof of a hold. A guard that is collected is released in the background.
  class Guard
    def initialize(native)
      @native = native
      @ended = false
    end

    # The fencing token: hand it to the resource with every write.
    def token = @native.token

    # The token of each lock, by name: of several as one, each resource is handed its own.
    def tokens = @native.tokens

    # Whether the lock may be relied on at this very moment.
    def held? = @native.is_held

    def lost? = !@ended && !held?

    # For how many seconds the lock may still be relied on if it were not renewed any more.
    def remaining = @native.remaining.to_f

    # Raises LockLostError once the lock is lost, NotHeldError once the guard was given back; for right before a write.
    def check = @native.check

    # Pushes the end of the lease to at least now + `ttl` seconds.
    def extend(ttl) = @native.extend(Native.span(ttl))

    # Frees the lock; answers `:released`, `:already_lost` or `:unconfirmed`.
    def release = ending { @native.release }

    # Lets another process go on with the hold: answers a text that Client#adopt makes the guard of, once, within the lease. From
    # then on this guard is given back, and the lock stays held. The text is a secret. On an error the lock is freed.
    def transfer
      @ended = true
      @native.transfer
    end

    # Frees the lock and waits for nothing.
    def forget
      @ended = true
      @native.forget
    end

    # Waits until the lock is lost (true) or given back (false).
    def wait_lost = @native.lost

    # Calls the block once, in a thread of its own, if the lock is lost.
    def on_lost = Thread.new { yield if wait_lost }

    # Runs the block with this guard and gives it back. Raises LockLostError if the lock was lost meanwhile.
    def hold
      Thread.handle_interrupt(Object => :never) do
        check
        # The block is interrupted as code outside of it.
        result = Thread.handle_interrupt(Object => :immediate) { yield self }
        check unless @ended
        result
      rescue Exception => e
        finish(e) unless @ended
        raise
      else
        finish(nil) unless @ended
        result
      end
    end

    private

    def finish(_error) = release

    def ending
      released = yield
      @ended = true
      %i[released already_lost unconfirmed][released]
    end
  end
end
