# frozen_string_literal: true

module Fencelock
  Snapshot = Struct.new(:value, :version)

  # A value by name that is replaced only if nobody was faster. Values are what JSON has.
  class Versioned
    def initialize(native, retries)
      @native = native
      @retries = retries
    end

    def read
      seen = @native.read
      seen && Snapshot.new(JSON.parse(seen.value), seen.version)
    end

    # Writes a value if its version is still `expected`, or nil for no value. Answers the new version; nil if somebody was faster.
    def compare_and_set(expected, value) = @native.compare_and_set(expected, JSON.generate(value))

    def delete(expected) = @native.delete(expected)

    # Replaces the value by that of the block, which is asked again if somebody was faster. nil leaves everything as it is.
    def update
      @retries.succ.times do |tries|
        seen = read
        value = yield seen&.value
        return if value.nil?

        version = compare_and_set(seen&.version, value)
        return Snapshot.new(value, version) if version

        sleep(rand * 0.005 * 2**[tries, 6].min)
      end
      raise ConflictError.new('other writers were faster each time; try again, or raise `retries`', code: 'conflict')
    end
  end

  # Writes on Redis that a newer token has written are refused with LockLostError.
  class Gate
    def initialize(native)
      @native = native
    end

    def set(key, token, value) = @native.set(key.to_s, token, value)

    def delete(key, token) = @native.delete(key.to_s, token)

    def increment(key, token, by = 1) = @native.increment(key.to_s, token, by)
  end
end
