# frozen_string_literal: true

module Fencelock
  # There is no run to start: `reason` is `running`, `done` or `not_due`, `next` the earliest time at which it is worth asking again
  # (nil if only the scheduler knows it), `last` the last run.
  Skipped = Struct.new(:reason, :next, :last)

  # A run of a job: a guard that ends with how it went. One that is released or collected has failed.
  class Run < Guard
    def initialize(native)
      @run = native
      super(native.guard)
    end

    # The scheduled instant.
    def instant = @run.instant

    def succeed = ending { @run.succeed }

    def fail = ending { @run.fail }

    private

    def finish(error) = error ? self.fail : succeed
  end

  # A scheduled job: at most one run in each period, in one process of the fleet.
  class Job
    def initialize(native)
      @native = native
    end

    # The run that is due, or Skipped. `at` names it by an instant of the scheduler's own.
    def start(at: nil)
      Native.hand_over do
        started = @native.start(at)
        next Run.new(started.run) if started.started?

        Skipped.new(started.reason, started.next_at, JSON.parse(started.last, symbolize_names: true))
      end
    end

    # Runs the block if a run is due, and answers its value; else Skipped. If the block raises, the run has failed.
    def run(&block)
      Thread.handle_interrupt(Object => :never) do
        run = start
        run.is_a?(Skipped) ? run : run.hold(&block)
      end
    end

    # The last run, with times in milliseconds since 1970; nil if there was none.
    def state = JSON.parse(@native.last_run, symbolize_names: true)
  end
end
