# frozen_string_literal: true

Gem::Specification.new do |gem|
  gem.name = 'fencelock'
  gem.version = '0.1.0'
  gem.platform = ENV.fetch('FENCELOCK_GEM_PLATFORM', Gem::Platform.local)
  gem.summary = 'Distributed locks with a fencing token on every grant'
  gem.description = 'Locks between processes and machines on Redis, etcd, ZooKeeper, PostgreSQL, MySQL, SQLite and memory: a fencing ' \
                    'token on every grant, honest guards, nothing left behind.'
  gem.authors = ['The fencelock authors']
  gem.homepage = 'https://github.com/fencelock/fencelock'
  gem.licenses = ['MIT', 'Apache-2.0']
  gem.required_ruby_version = '>= 3.1'
  # The native part lies in lib/fencelock/native: install.sh puts it there.
  gem.files = Dir['lib/**/*', 'README.md', 'LICENSE-*']
  gem.metadata = { 'source_code_uri' => gem.homepage, 'rubygems_mfa_required' => 'true' }
  gem.add_dependency 'ffi', '~> 1.15'
end
