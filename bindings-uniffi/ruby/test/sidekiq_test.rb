# frozen_string_literal: true

require_relative 'support'
require 'fencelock/sidekiq'

class SidekiqTest < Minitest::Test
  # As Sidekiq does it: it keeps the words behind `add`, and makes a middleware of them for each job.
  def run_job(args, unique, &body)
    @words ||= [{ url: "memory:#{name}" }]
    middleware = Fencelock::Sidekiq.new(*@words)
    middleware.call(nil, { 'class' => 'Report', 'args' => args, 'unique' => unique }, 'default', &body)
  end

  def test_twins_do_not_run_together
    ran = run_job([1], true) do
      assert_raises(Fencelock::Sidekiq::Held) { run_job([1], true) { flunk } }
      assert_nil run_job([1], { 'on_held' => 'skip', 'ttl' => 5 }) { flunk }
      assert_equal :other, run_job([2], { 'ttl' => 5 }) { :other }
      assert_equal :not_unique, run_job([1], nil) { :not_unique }
      :ran
    end
    assert_equal :ran, ran
    assert_equal :again, run_job([1], true) { :again }
  end

  # As the processes of a swarm: the parent has connected before it forks.
  def test_a_forked_process_meets_the_twin_of_its_parent
    Dir.mktmpdir do |folder|
      @words = [{ url: "sqlite:#{folder}/locks.db" }]
      run_job([1], true) do
        met = in_child do
          held = assert_raises(Fencelock::Sidekiq::Held) { run_job([1], true) { flunk } }
          [held.code, run_job([2], true) { :other }]
        end
        assert_equal ['timeout', :other], met
      end
    end
  end

  def test_one_client_serves_all_jobs_of_a_process
    @words = [{ 'url' => "memory:#{name}", 'ttl' => 5 }]
    run_job([1], true) {}
    count = Fencelock::Client.clients.size
    run_job([2], true) {}
    assert_equal count, Fencelock::Client.clients.size
  end

  def test_without_a_url_it_says_so
    assert_match 'url:', assert_raises(ArgumentError) { Fencelock::Sidekiq.new }.message
  end

  def test_long_arguments_are_hashed
    assert_equal 1, run_job(['x' * 5000], true) { 1 }
  end
end
