# frozen_string_literal: true

require 'digest'
require_relative '../fencelock'

module Fencelock
  # A server middleware of Sidekiq: at most one job with the same class and arguments runs at a time, for classes that say `unique: true`,
  # or `unique:` with options of the lock.
  class Sidekiq
    # Two of it meet: Sidekiq tries the later one again.
    Held = Class.new(Error)

    def initialize(url:, **options)
      @url, @options = url, options
      @mutex = Mutex.new
    end

    def call(_worker, job, _queue)
      unique = job['unique'] or return yield
      options = unique.is_a?(Hash) ? unique.transform_keys(&:to_sym) : {}
      on_held = options.delete(:on_held)
      guard = client.lock(name(job), **options).try_acquire
      return guard.hold { yield } if guard
      raise Held.new("another #{job['class']} with these arguments runs", code: 'timeout', retryable: true) unless on_held.to_s == 'skip'
    end

    private

    # Connected by the process that works, not by the one that forked it.
    def client
      @mutex.synchronize do
        @client = Fencelock.connect(@url, **@options) unless @client&.here?
        @client
      end
    end

    def name(job)
      arguments = JSON.generate(job['args'])
      arguments = "sha256:#{Digest::SHA256.hexdigest(arguments)}" if arguments.bytesize > 256
      "sidekiq:#{job['class']}:#{arguments}"
    end
  end
end
