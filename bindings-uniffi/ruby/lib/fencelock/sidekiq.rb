# frozen_string_literal: true

require 'digest'
require_relative '../fencelock'

module Fencelock
  # A server middleware of Sidekiq: at most one job with the same class and arguments runs at a time, for classes that say `unique: true`,
  # or `unique:` with options of the lock.
  class Sidekiq
    # Two of it meet: Sidekiq tries the later one again.
    Held = Class.new(Error)

    @clients, @mutex = {}, Mutex.new

    # The client of this process for these options, which is connected by the process that works, not by the one that forked it.
    def self.client(options)
      @mutex.synchronize do
        url, rest = options.fetch(:url), options.except(:url)
        @clients[options] = Fencelock.connect(url, **rest) unless @clients[options]&.here?
        @clients[options]
      end
    end

    # Sidekiq makes one for each job, with the words behind `chain.add`: `url:` and options of the client.
    def initialize(options = {})
      @options = options.transform_keys(&:to_sym)
      raise ArgumentError, 'say where the locks are: chain.add Fencelock::Sidekiq, url: "redis://…"' unless @options[:url]
    end

    def call(_worker, job, _queue)
      unique = job['unique'] or return yield
      options = unique.is_a?(Hash) ? unique.transform_keys(&:to_sym) : {}
      on_held = options.delete(:on_held)
      guard = Sidekiq.client(@options).lock(name(job), **options).try_acquire
      return guard.hold { yield } if guard
      raise Held.new("another #{job['class']} with these arguments runs", code: 'timeout', retryable: true) unless on_held.to_s == 'skip'
    end

    private

    def name(job)
      arguments = JSON.generate(job['args'])
      arguments = "sha256:#{Digest::SHA256.hexdigest(arguments)}" if arguments.bytesize > 256
      "sidekiq:#{job['class']}:#{arguments}"
    end
  end
end
