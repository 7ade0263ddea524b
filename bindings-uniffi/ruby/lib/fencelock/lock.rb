# frozen_string_literal: true

module Fencelock
  # What all things have that are acquired.
  module Acquirable
    # Acquires, runs the block with the guard, and gives it back.
    def synchronize(wait: nil, &block)
      Thread.handle_interrupt(Object => :never) { acquire(wait: wait).hold(&block) }
    end
  end

  # A lock by name, or several as one.
  class Lock
    include Acquirable

    def initialize(native)
      @native = native
    end

    # Waits for the lock: so many seconds, or as long as the option `wait` says, which is for ever by default. Raises LockTimeoutError.
    def acquire(wait: nil) = Native.hand_over { Guard.new(@native.acquire(Native.span(wait))) }

    # Asks once, or waits so many seconds: nil if somebody else holds the lock.
    def try_acquire(wait: nil)
      Native.hand_over { (guard = @native.try_acquire(Native.span(wait))) && Guard.new(guard) }
    end

    def locked? = @native.is_locked

    # The holders of the lock and its waiters, with times in milliseconds.
    def state
      state = JSON.parse(@native.inspect_lock, symbolize_names: true)
      (state[:holders] + state[:waiters]).each { |one| one[:info] = one[:info].empty? ? {} : JSON.parse(one[:info]) }
      state
    end
  end

  # A place in which whoever holds a lock may enter it again.
  class Scope
    def initialize(native)
      @native = native
    end

    def lock(name, **options) = Lock.new(@native.lock(name.to_s, Native.options(options)))
  end

  Leader = Struct.new(:token, :info)

  # One leader at a time, the next one in order. A release of the guard resigns.
  class Election
    include Acquirable

    def initialize(native)
      @native = native
    end

    # Waits until this candidate leads.
    def campaign(wait: nil)
      return Native.hand_over { Guard.new(@native.campaign) } unless wait

      try_campaign(wait: wait) || raise(LockTimeoutError.new('somebody else leads', code: 'timeout', retryable: true))
    end
    alias acquire campaign

    def try_campaign(wait: nil)
      Native.hand_over { (guard = @native.try_campaign(Native.span(wait))) && Guard.new(guard) }
    end

    def leader = told(@native.leader)

    # Yields the leader, or nil if nobody leads: at once at first, then after each change.
    def observe
      return to_enum(:observe) unless block_given?

      observer = @native.observe
      loop { yield told(observer.changed) }
    end

    private

    def told(leader) = leader && Leader.new(leader.token, JSON.parse(leader.info))
  end
end
