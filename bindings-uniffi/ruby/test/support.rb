# frozen_string_literal: true

require 'fencelock'
require 'minitest/autorun'
require 'socket'
require 'tmpdir'

# A Redis server of the test's own.
module Server
  def self.url
    @url ||= begin
      port = TCPServer.open('127.0.0.1', 0) { |socket| socket.addr[1] }
      pid = spawn(ENV.fetch('FENCELOCK_REDIS_SERVER', 'redis-server'), '--port', port.to_s, '--save', '', out: File::NULL)
      owner = Process.pid
      Minitest.after_run { Process.kill(:TERM, pid) if Process.pid == owner }
      until (TCPSocket.open('127.0.0.1', port, &:itself) rescue nil)
        raise 'the Redis server has ended' if Process.wait(pid, Process::WNOHANG)
      end
      "redis://127.0.0.1:#{port}"
    end
  end
end

# A child that answers the value of the block.
def in_child
  reader, writer = IO.pipe
  pid = fork do
    writer.write(Marshal.dump(yield))
  rescue Exception => e
    writer.write(Marshal.dump("#{e.class}: #{e.message}"))
  ensure
    writer.close
    exit!(0)
  end
  writer.close
  reader.read.then { |answer| Marshal.load(answer) }
ensure
  Process.wait(pid)
end
