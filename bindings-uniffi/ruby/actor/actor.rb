# frozen_string_literal: true

# The Ruby actor: the requests of tests/README.md over the installed gem, each that waits in a thread of its own.

require 'fencelock'

class Actor
  TIMES = Fencelock::TABLE.select { |row| row[:kind].end_with?('duration') }.map { |row| row[:name] }
  Given = Class.new(StandardError)
  # What does not wait is done by the thread that reads.
  AT_ONCE = %w[ping drop is_held remaining token lost load busy crash abort].freeze

  def initialize
    @clients, @guards, @scopes, @tasks, @numbers = [], {}, {}, {}, 0
    @lock, @out = Monitor.new, Monitor.new
  end

  def serve(line)
    words = JSON.parse(line, symbolize_names: true)
    id, op = words.delete(:id), words.delete(:op)
    if @client.nil? && !%w[ping connect busy crash].include?(op)
      return say(id: id, **failure('closed', 'this actor is not connected'))
    end

    @lock.synchronize { @tasks[id] = Thread.current }
    return answer(id, op, words) if AT_ONCE.include?(op)

    # What it is told before it has begun, it hears when it has.
    Thread.handle_interrupt(Given => :never) { @lock.synchronize { @tasks[id] = Thread.new { answer(id, op, words) } } }
  end

  def leave = @clients.each(&:close)

  private

  def say(**message) = @out.synchronize { $stdout.write("#{JSON.generate(message)}\n") && $stdout.flush }

  def failure(code, message, retryable: false, fields: {})
    { error: { code: code, message: message, retryable: retryable, fields: fields } }
  end

  def answer(id, op, words)
    ended = begin
      { ok: Thread.handle_interrupt(Given => :immediate) { send("do_#{op}", **words) } }
    rescue Given
      failure('cancelled', 'the thread was told to stop')
    rescue Fencelock::Error => e
      failure(e.code, e.text, retryable: e.retryable?, fields: e.fields)
    rescue StandardError => e # What is no error of the package is a defect, and has to be seen as one.
      failure('internal', "#{e.class}: #{e.message} #{e.backtrace.first}")
    end
    say(id: id, **ended) if @lock.synchronize { @tasks.delete(id) }
  end

  def said(options)
    options.to_h { |name, value| [name, TIMES.include?(name.to_s) && value.is_a?(Numeric) ? value / 1000.0 : value] }
  end

  def lock_of(lock, mode: 'exclusive', permits: nil, scope: nil, options: {})
    options = said(options || {})
    case mode
    when 'read' then @client.read_lock(lock, **options)
    when 'write' then @client.write_lock(lock, **options)
    when 'permit' then @client.semaphore(lock, permits, **options)
    else scope ? (@scopes[scope] ||= @client.scope).lock(lock, **options) : @client.lock(lock, **options)
    end
  end

  def keep(guard, **facts)
    guard && @lock.synchronize do
      @guards[@numbers += 1] = guard
      { guard: @numbers, token: guard.token, **facts }
    end
  end

  def guard(number)
    @guards[number] || raise(Fencelock::NotHeldError.new('this actor has no such guard', code: 'not_held'))
  end

  def seconds(time) = time && (time / 1000.0)

  def do_ping = { actor: 'ruby', pid: Process.pid }

  def do_connect(url:, options: {})
    client = Fencelock.connect(url, **said(options || {}))
    others = @lock.synchronize do
      @clients << client
      mine, others = @tasks.partition { |_, thread| thread == Thread.current }
      @tasks = mine.to_h
      others
    end
    others.each do |id, thread|
      thread.raise(Given)
      say(id: id, **failure('closed', 'the client was given up')) if id.is_a?(Integer)
    end
    @guards.each_value(&:forget)
    @guards, @scopes, @client = {}, {}, client
    nil
  end

  def do_acquire(lock:, **words) = keep(lock_of(lock, **words).acquire)

  def do_try(lock:, wait: nil, **words) = keep(lock_of(lock, **words).try_acquire(wait: seconds(wait)))

  def do_acquire_all(locks:, options: {}) = keep(@client.all(locks, **said(options)).acquire)

  def do_try_all(locks:, options: {}, wait: nil)
    keep(@client.all(locks, **said(options)).try_acquire(wait: seconds(wait)))
  end

  def do_with(lock:, work:, options: {})
    lock_of(lock, options: options).synchronize do |guard|
      # A body is not ended from outside: it looks at its guard between its steps.
      ending = Process.clock_gettime(Process::CLOCK_MONOTONIC) + (work / 1000.0)
      while (left = ending - Process.clock_gettime(Process::CLOCK_MONOTONIC)).positive?
        sleep([left, 0.005].min)
        guard.check
      end
      { token: guard.token }
    end
  end

  def do_abort(target:)
    @lock.synchronize { @tasks[target]&.raise(Given) }
    nil
  end

  def do_release(guard:) = ended(guard, &:release)

  # A guard that was refused is still there.
  def ended(number)
    released = yield guard(number)
    @guards.delete(number)
    released
  end

  def do_transfer(guard:) = @guards.delete(guard).transfer

  def do_adopt(text:) = keep(@client.adopt(text))

  def do_drop(guard:)
    guard(guard).forget
    @guards.delete(guard)
    nil
  end

  def do_extend(guard:, ttl:) = guard(guard).extend(ttl / 1000.0)

  def do_is_held(guard:) = @guards.key?(guard) && @guards[guard].held?

  def do_remaining(guard:) = @guards.key?(guard) ? @guards[guard].remaining * 1000 : 0

  def do_token(guard:) = guard(guard).token

  def do_lost(guard:)
    held = guard(guard)
    Thread.new { say(event: 'lost', guard: guard) if held.wait_lost }
    nil
  end

  def do_inspect(lock:, options: {})
    state = lock_of(lock, options: options).state
    { **state, holder: state[:holders].first }
  end

  def do_campaign(lock:, options: {}) = keep(@client.election(lock, **said(options)).campaign)

  def do_try_campaign(lock:, options: {}) = keep(@client.election(lock, **said(options)).try_campaign)

  def seen(leader) = leader && { token: leader.token, info: JSON.generate(leader.info) }

  def do_leader(lock:) = seen(@client.election(lock).leader)

  def do_observe(lock:, seen: nil, options: {})
    @client.election(lock, **said(options)).observe { |leader| return seen(leader) if leader&.token != seen&.fetch(:token) }
  end

  def do_start_job(lock:, period: nil, cron: nil, timezone: nil, at: nil, options: {})
    job = @client.job(lock, every: seconds(period), cron: cron, timezone: timezone, **said(options))
    run = job.start(at: at && Time.at(at.to_r / 1000))
    return { skipped: { reason: run.reason } } if run.is_a?(Fencelock::Skipped)

    keep(run, instant: (run.instant.to_r * 1000).to_f)
  end

  def do_end_job(guard:, succeeded:) = ended(guard, &(succeeded ? :succeed : :fail))

  def do_inspect_job(lock:)
    state = @client.job(lock, every: 1).state
    state && { **state, info: JSON.generate(state[:info]) }
  end

  def do_read_version(lock:) = @client.version(lock).read&.to_h

  def do_compare_and_set(lock:, expected:, value:, options: {})
    version = @client.version(lock, **said(options))
    done = version.compare_and_set(expected, value)
    done ? { done: done } : { changed: version.read&.to_h }
  end

  def do_delete_version(lock:, expected:, options: {})
    version = @client.version(lock, **said(options))
    done = version.delete(expected)
    done ? { done: done } : { changed: version.read&.to_h }
  end

  def do_update(lock:, add:, options: {})
    made = @client.version(lock, **said(options)).update { |value| (sum = (value || 0) + add).negative? ? nil : sum }
    made&.to_h
  end

  def do_is_locked(lock:) = @client.lock(lock).locked?

  def do_break_lock(lock:, reason:, token: nil)
    @client.break_lock(lock, reason, token: token).map { |holder| { token: holder[:token] } }
  end

  def do_gate(resource:, token:, write:)
    name, value = write.is_a?(Hash) ? write.first : [write]
    @client.gate.public_send(name, resource, token, *[value].compact)
  end

  def do_ping_store = @client.ping * 1000

  def do_names(prefix:) = @client.names(prefix)

  def do_load = { running: @tasks.size - 1, done: 0, guards: @guards.size, **@client.stats }

  def do_close = @client.close

  def do_busy(time:)
    @out.synchronize { sleep(time / 1000.0) }
    nil
  end

  def do_crash = exit!(9)
end

Thread.report_on_exception = false
actor = Actor.new
$stdin.each_line { |line| actor.serve(line) }
actor.leave
exit!(0)
