# frozen_string_literal: true

require_relative 'support'
require 'timeout'

class LockTest < Minitest::Test
  def client = @client ||= Fencelock.connect("memory:#{name}")

  def teardown
    @client&.close
  end

  # The README's first lines, on each store that is near.
  def test_first_lock
    readme = File.read("#{__dir__}/../README.md")[/```ruby\n(.*?)```/m, 1]
    Dir.mktmpdir do |folder|
      ['memory:', "sqlite:#{folder}/locks.db", Server.url].each do |url|
        assert_includes readme, "'memory:'"
        assert_output(/\Acharging with token \d{10,}\n\z/) { eval(readme.sub('memory:', url)) }
      end
    end
  end

  def test_tutorial
    blocks = File.read("#{__dir__}/../../../docs/tutorial/ruby.md").scan(/```ruby\n(.*?)```/m).flatten
    assert_output(/\Acharging order 42 with token \d+\n\z/) { blocks.each { |block| eval(block, binding.dup) } }
  end

  def test_excludes
    guard = client.lock('x').acquire
    assert guard.held? && guard.remaining > 20
    assert_nil client.lock('x').try_acquire
    error = assert_raises(Fencelock::LockTimeoutError) { client.lock('x').acquire(wait: 0.05) }
    assert_equal ['timeout', true, 'x'], [error.code, error.retryable?, error.fields['name']]
    assert_equal :released, guard.release
    refute guard.lost?
    assert_raises(Fencelock::NotHeldError) { guard.release }
    client.lock('x') { |later| assert_operator later.token, :>, guard.token }
  end

  def test_mistakes
    assert_equal 'ttl', assert_raises(Fencelock::InvalidArgumentError) { client.lock('x', tll: 5).acquire }.fields['nearest']
    assert_raises(Fencelock::InvalidArgumentError) { client.lock('x', ttl: 0).acquire }
    assert_raises(Fencelock::InvalidArgumentError) { Fencelock.connect('mongodb://host') }
  end

  def test_a_waiter_lets_others_run
    guard = client.lock('x').acquire
    waiter = Thread.new { client.lock('x').acquire.release }
    Thread.pass until client.lock('x').state[:waiters].any?
    guard.release
    assert_equal :released, waiter.value
  end

  def test_what_ends_a_wait_leaves_nothing
    guard = client.lock('x').acquire
    assert_raises(Timeout::Error) { Timeout.timeout(0.05) { client.lock('x').acquire } }
    killed = Thread.new { client.lock('x').acquire }
    Thread.pass until client.lock('x').state[:waiters].any?
    killed.kill.join
    guard.release
    client.lock('x').acquire(wait: 20).release
    assert_equal({ entries: 0, locks: 0 }, client.stats)
  end

  # However late the exception comes, a grant that nobody has is given back.
  def test_a_grant_that_meets_an_exception_is_given_back
    Thread.report_on_exception = false
    60.times do |step|
      thread = Thread.new { client.lock('x').acquire.then { |guard| guard.release } }
      sleep(step * 0.00002)
      thread.kill.join
      GC.start if (step % 20).zero?
    end
    GC.start
    client.lock('x').acquire(wait: 20).release
  end

  def test_a_lost_lock
    told = Queue.new
    lost = assert_raises(Fencelock::LockLostError) do
      client.lock('x', ttl: 0.05, renew: false) do |guard|
        guard.on_lost { told << guard.lost? }
        assert told.pop
        assert_raises(Fencelock::LockLostError) { guard.check }
      end
    end
    assert_equal 'lost', lost.code
  end

  def test_an_exception_wins_and_the_lock_is_free
    assert_raises(ZeroDivisionError) { client.lock('x') { 1 / 0 } }
    refute client.lock('x').locked?
  end

  def test_jobs_elections_versions
    job = client.job('nightly', every: 86_400)
    assert_equal 7, job.run { 7 }
    skipped = job.run { flunk }
    assert_equal 'done', skipped.reason
    assert_operator skipped.next, :>, Time.now
    assert_equal 'succeeded', job.state[:status]
    election = client.election('leader')
    leading = election.campaign
    assert_equal leading.token, election.observe.first.token
    assert_equal 3, client.version('v').update { |value| (value || 0) + 3 }.value
  end

  def test_a_gate_refuses_what_is_old
    Fencelock.connect(Server.url) do |client|
      old, new = 2.times.map { client.lock('gate') { |guard| guard.token } }
      gate = client.gate
      gate.set('balance', new, '7')
      assert_raises(Fencelock::LockLostError) { gate.set('balance', old, '6') }
    end
  end

  def test_a_child_of_a_fork
    Dir.mktmpdir do |folder|
      url = "sqlite:#{folder}/locks.db"
      parent = Fencelock.connect(url)
      guard = parent.lock('x').acquire
      codes = in_child do
        refused = [-> { parent.lock('x').acquire }, -> { guard.check }].map do |act|
          act.call
        rescue Fencelock::ClosedError => e
          e.text
        end
        own = Fencelock.connect(url)
        [*refused, guard.held?, guard.release, own.lock('x').try_acquire, own.lock('y') { |mine| mine.held? }]
      end
      forked = 'this belongs to the process that forked this one; connect again here'
      assert_equal [forked, forked, false, :already_lost, nil, true], codes
      assert_equal :released, guard.release
      parent.close
    end
  end

  def test_at_exit_what_is_held_is_given_back
    Dir.mktmpdir do |folder|
      url = "sqlite:#{folder}/locks.db"
      system(RbConfig.ruby, '-rfencelock', '-e', "Fencelock.connect('#{url}').lock('x').acquire", exception: true)
      Fencelock.connect(url) { |client| assert client.lock('x').try_acquire }
    end
  end
end
