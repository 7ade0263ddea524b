package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
)

func connect(name, url string) (library, error) {
	if name == "clientv3" {
		return connectEtcd(url)
	}
	options, err := redis.ParseURL(url)
	if err != nil {
		return nil, err
	}
	client := redis.NewClient(options)
	switch name {
	case "redsync":
		return redsyncLibrary{redsync.New(goredis.NewPool(client))}, nil
	case "redislock":
		return redislockLibrary{redislock.New(client)}, nil
	}
	return nil, fmt.Errorf("there is no library %q", name)
}

type redsyncLibrary struct{ sync *redsync.Redsync }

func (l redsyncLibrary) take(ctx context.Context, name string, ttl time.Duration, wait *time.Duration) (hold, error) {
	tries := math.MaxInt
	if wait != nil {
		tries = int(*wait/poll) + 1
	}
	mutex := l.sync.NewMutex(name, redsync.WithExpiry(ttl), redsync.WithTries(tries), redsync.WithRetryDelay(poll))
	err := mutex.LockContext(ctx)
	var taken *redsync.ErrTaken
	if errors.Is(err, redsync.ErrFailed) || errors.As(err, &taken) {
		return nil, errNotGranted
	}
	return redsyncHold{l, mutex}, err
}

type redsyncHold struct {
	library redsyncLibrary
	mutex   *redsync.Mutex
}

func (h redsyncHold) release(ctx context.Context) (bool, error) {
	ours, err := h.mutex.UnlockContext(ctx)
	var taken *redsync.ErrTaken
	if errors.Is(err, redsync.ErrLockAlreadyExpired) || errors.As(err, &taken) {
		return false, nil
	}
	return ours, err
}

// extend is only known for the length the mutex was made with, so another one of the same value does it.
func (h redsyncHold) extend(ctx context.Context, ttl time.Duration) error {
	same := h.library.sync.NewMutex(h.mutex.Name(), redsync.WithValue(h.mutex.Value()), redsync.WithExpiry(ttl))
	ours, err := same.ExtendContext(ctx)
	if err == nil && !ours {
		err = errors.New("the lock was lost")
	}
	return err
}

type redislockLibrary struct{ client *redislock.Client }

func (l redislockLibrary) take(ctx context.Context, name string, ttl time.Duration, wait *time.Duration) (hold, error) {
	options := &redislock.Options{RetryStrategy: redislock.LinearBackoff(poll)}
	limit := time.Hour
	if wait != nil {
		limit = max(*wait, time.Second)
		options.RetryStrategy = redislock.LimitRetry(options.RetryStrategy, int(*wait/poll))
	}
	// The retries end with the context's deadline, or with the ttl if it has none.
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	lock, err := l.client.Obtain(ctx, name, ttl, options)
	if errors.Is(err, redislock.ErrNotObtained) {
		return nil, errNotGranted
	}
	return redislockHold{lock}, err
}

type redislockHold struct{ lock *redislock.Lock }

func (h redislockHold) release(ctx context.Context) (bool, error) {
	err := h.lock.Release(ctx)
	if errors.Is(err, redislock.ErrLockNotHeld) {
		return false, nil
	}
	return err == nil, err
}

func (h redislockHold) extend(ctx context.Context, ttl time.Duration) error {
	return h.lock.Refresh(ctx, ttl, nil)
}
