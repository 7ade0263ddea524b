package main

import (
	"context"
	"math"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
)

const ttl = 30 * time.Second

// redislockLocker has no retry of its own; its README retries every 100 ms.
type redislockLocker struct{ client *redislock.Client }

func newRedislock(server string) Locker {
	return redislockLocker{redislock.New(redis.NewClient(&redis.Options{Addr: server}))}
}

func (l redislockLocker) Acquire(ctx context.Context, key string) func() {
	options := &redislock.Options{RetryStrategy: redislock.LinearBackoff(100 * time.Millisecond)}
	// The retries end with the context's deadline, or with the ttl if it has none.
	ctx, cancel := context.WithTimeout(ctx, time.Hour)
	lock, err := l.client.Obtain(ctx, key, ttl, options)
	must(err)
	return func() {
		must(lock.Release(ctx))
		cancel()
	}
}

type redsyncLocker struct{ sync *redsync.Redsync }

func newRedsync(servers []string) Locker {
	pools := []redsyncredis.Pool{}
	for _, server := range servers {
		pools = append(pools, goredis.NewPool(redis.NewClient(&redis.Options{Addr: server})))
	}
	return redsyncLocker{redsync.New(pools...)}
}

func (l redsyncLocker) Acquire(ctx context.Context, key string) func() {
	mutex := l.sync.NewMutex(key, redsync.WithExpiry(ttl), redsync.WithTries(math.MaxInt))
	must(mutex.LockContext(ctx))
	return func() {
		_, err := mutex.UnlockContext(ctx)
		must(err)
	}
}

// rueidislockLocker on one server: one key instead of three, and no loop tracking, as its README advises from Redis 7.
type rueidislockLocker struct{ locker rueidislock.Locker }

func newRueidislock(server string) Locker {
	locker, err := rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption:   rueidis.ClientOption{InitAddress: []string{server}},
		KeyMajority:    1,
		NoLoopTracking: true,
	})
	must(err)
	return rueidislockLocker{locker}
}

func (l rueidislockLocker) Acquire(ctx context.Context, key string) func() {
	_, cancel, err := l.locker.WithContext(ctx, key)
	must(err)
	return cancel
}
