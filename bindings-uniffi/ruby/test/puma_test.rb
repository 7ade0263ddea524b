# frozen_string_literal: true

require_relative 'support'
require 'net/http'

# Puma in its cluster mode: the parent loads the application, which has a client and a guard, and forks; each worker has a client of its own.
class PumaTest < Minitest::Test
  APPLICATION = <<~'RUBY'
    require 'fencelock'
    PARENT = Fencelock.connect(ENV.fetch('URL'))
    HELD = PARENT.lock('parent').acquire
    run(lambda do |_|
      inherited = begin
        HELD.check
      rescue Fencelock::ClosedError => e
        e.code
      end
      LOCKS.lock('counter') do
        seen = File.read('count').to_i
        sleep 0.002
        File.write('count', seen + 1)
      end
      [200, {}, ["#{Process.pid} #{inherited}"]]
    end)
  RUBY
  CONFIGURATION = <<~RUBY
    workers 2
    threads 2, 2
    preload_app!
    bind 'tcp://127.0.0.1:0'
    on_worker_boot { ::LOCKS = Fencelock.connect(ENV.fetch('URL')) }
  RUBY
  TIMES = 80

  def test_workers_count_right_and_the_parent_keeps_its_lock
    skip 'there is no Puma' unless system('puma', '--version', out: File::NULL, err: File::NULL)
    Dir.mktmpdir do |folder|
      { 'config.ru' => APPLICATION, 'puma.rb' => CONFIGURATION, 'count' => '0' }.each { |name, text| File.write("#{folder}/#{name}", text) }
      reader, writer = IO.pipe
      pid = spawn({ 'URL' => Server.url }, 'puma', '--config', 'puma.rb', chdir: folder, out: writer, err: writer)
      writer.close
      port = nil
      port ||= reader.gets[/Listening on http:.*:(\d+)/, 1] until port
      booted = 0
      booted += 1 if reader.gets.include?('booted') until booted == 2
      answers = 8.times.map { Thread.new { (TIMES / 8).times.map { Net::HTTP.get('127.0.0.1', '/', port.to_i) } } }.flat_map(&:value)
      assert_equal [2, ['closed']], [answers.map(&:to_i).uniq.size, answers.map { |answer| answer.split.last }.uniq]
      assert_equal TIMES, File.read("#{folder}/count").to_i
      Fencelock.connect(Server.url) do |client|
        assert_nil client.lock('parent').try_acquire
        Process.kill(:TERM, pid)
        reader.read
        Process.wait(pid)
        assert client.lock('parent').try_acquire(wait: 5)
      end
    end
  end
end
