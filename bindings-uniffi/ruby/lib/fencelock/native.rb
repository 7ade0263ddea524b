# frozen_string_literal: true

require 'io/wait'
require_relative 'native/fencelock_native'

module Fencelock
  # How this process waits for the native part, in place of what uniffi generates: that starts a thread of Ruby for each answer, and
  # loses a grant when an exception from another thread (`Timeout`, `Thread#kill`) arrives just then.
  module Waiting
    LIBRARY = FencelockNative.const_get(:UniFFILib)
    # The native part writes a byte to the pipe itself, so no thread of its own runs Ruby.
    WAKE = FFI::Function.new(:void, %i[uint64 int8], LIBRARY.ffi_libraries.first.find_function('fencelock_wake'))
    READY = 0

    @pipes, @process = Queue.new, Process.pid

    class << self
      # A pipe of this process: the child of a fork shares those of its parent.
      def take
        @pipes, @process = Queue.new, Process.pid unless @process == Process.pid
        @pipes.pop(true)
      rescue ThreadError
        IO.pipe
      end

      def give(pipe) = @pipes << pipe
    end

    # Only the wait itself is interrupted; it lets other threads and fibers run. (`Object`: `Exception` would not cover `Thread#kill`.)
    def uniffi_rust_call_async(future, poll, cancel, complete, free, lift, error)
      Thread.handle_interrupt(Object => :never) do
        reader, writer = pipe = Waiting.take
        asked = false
        begin
          loop do
            asked = true
            LIBRARY.public_send(poll, future, WAKE, writer.fileno)
            # It takes nothing from the pipe: a read that is interrupted may have.
            Thread.handle_interrupt(Object => :on_blocking) { reader.wait_readable }
            code = reader.getbyte
            asked = false
            break if code == READY
          end
          lift.call(rust_call_with_error(error, complete, future))
        ensure
          if asked
            LIBRARY.public_send(cancel, future)
            woken = reader.wait_readable(1) && reader.getbyte
            take_back { lift.call(rust_call_with_error(error, complete, future)) } if woken == READY
          end
          LIBRARY.public_send(free, future)
          # A pipe that may still be written to is not used again.
          Waiting.give(pipe) if !asked || woken
        end
      end
    end

    # The work may have ended just then: uniffi forgets what it had won, unless it is taken.
    def take_back
      won = yield
      won = won.run.guard if won.respond_to?(:run)
      won.forget if won.respond_to?(:forget)
    rescue StandardError
      nil # It was cancelled, or failed.
    end

    ERRORS = {
      'Timeout' => LockTimeoutError, 'Lost' => LockLostError, 'NotHeld' => NotHeldError, 'Invalid' => InvalidArgumentError,
      'Unsupported' => UnsupportedError, 'Unavailable' => UnavailableError, 'Auth' => AuthenticationError,
      'Conflict' => ConflictError, 'Cancelled' => CancelledError, 'Closed' => ClosedError, 'Internal' => InternalError
    }.freeze

    def rust_call_with_error(...)
      super
    rescue FencelockNative::InternalError => e
      raise InternalError, e.message
    rescue StandardError => e
      variant = e.class.name.delete_prefix('FencelockNative::FencelockError::')
      raise unless ERRORS.key?(variant)

      code = variant.gsub(/(?<=.)[A-Z]/) { "_#{_1}" }.downcase
      raise ERRORS[variant].new(e.text, code: code, retryable: e.retryable, fields: e.fields), cause: nil
    end
  end

  FencelockNative.singleton_class.prepend(Waiting)

  # No SQLite file of ours is open in a fork.
  module Forking
    def _fork
      FencelockNative.before_fork
      begin
        super
      ensure
        FencelockNative.after_fork
      end
    end
  end

  Process.singleton_class.prepend(Forking)

  # The table of options: rows with name, kind, default, scope and doc.
  TABLE = JSON.parse(FencelockNative.options_table, symbolize_names: true).freeze
  TIMES = TABLE.select { |row| row[:kind].end_with?('duration') }.to_h { |row| [row[:name].to_sym, true] }.freeze
  private_constant :Waiting, :Forking, :TIMES

  # Values on their way to the native part.
  module Native
    module_function

    # A time, for which uniffi takes a `Time`. What is longer than 300 years is as good as without end.
    def span(seconds)
      if seconds.is_a?(String)
        raise InvalidArgumentError.new("a time is a number of seconds, and not #{seconds.inspect}", code: 'invalid')
      end

      seconds && Time.at(seconds.to_f.clamp(0, 1e10))
    end

    def options(options)
      return if options.empty?

      options.to_h { |name, value| [name.to_s, FencelockNative::Setting::JSON.new(JSON.generate(milliseconds(name, value)))] }
    end

    def milliseconds(name, value)
      return value if !TIMES[name] || value.is_a?(String) || !value.respond_to?(:to_f)

      value.to_f.infinite? ? nil : value.to_f * 1000
    end

    # Hands on what `made` has won. An exception from another thread that arrives in between gives it back.
    def hand_over
      won = handed = nil
      Thread.handle_interrupt(Object => :never) { won = yield }
      handed = true
      won
    ensure
      won.forget if won.respond_to?(:forget) && !handed
    end
  end
  private_constant :Native
end
