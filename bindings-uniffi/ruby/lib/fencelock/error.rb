# frozen_string_literal: true

module Fencelock
  # A refusal or failure. `code` is the same in every language, `fields` are the facts by name.
  class Error < StandardError
    attr_reader :code, :fields

    def initialize(message, code: 'internal', retryable: false, fields: {})
      text = fields.empty? ? message : "#{message} (#{fields.sort.map { |name, value| "#{name}: #{value}" }.join(', ')})"
      super(text)
      @text, @code, @retryable, @fields = message, code, retryable, fields
    end

    # The message without the facts.
    attr_reader :text

    # Whether the same call may succeed later.
    def retryable? = @retryable
  end

  LockTimeoutError = Class.new(Error)
  LockLostError = Class.new(Error)
  NotHeldError = Class.new(Error)
  InvalidArgumentError = Class.new(Error)
  UnsupportedError = Class.new(Error)
  UnavailableError = Class.new(Error)
  AuthenticationError = Class.new(Error)
  ConflictError = Class.new(Error)
  CancelledError = Class.new(Error)
  ClosedError = Class.new(Error)
  InternalError = Class.new(Error)
end
