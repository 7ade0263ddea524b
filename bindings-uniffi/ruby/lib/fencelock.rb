# frozen_string_literal: true

# Locks between processes and machines, with a fencing token on every grant.
module Fencelock
end

require 'json'
require_relative 'fencelock/error'
require_relative 'fencelock/native'
require_relative 'fencelock/guard'
require_relative 'fencelock/lock'
require_relative 'fencelock/job'
require_relative 'fencelock/version'
require_relative 'fencelock/client'

module Fencelock
  # Connects to the store that a URL names. Options are those of the table, times in seconds. With a block the client is closed
  # at its end.
  def self.connect(url, **options)
    client = Client.new(url, **options)
    return client unless block_given?

    begin
      yield client
    ensure
      client.close
    end
  end
end
