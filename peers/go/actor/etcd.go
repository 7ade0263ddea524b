package main

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

// etcdLibrary is the package `concurrency` of etcd's own client. A mutex belongs to a session, so each has one.
type etcdLibrary struct {
	client *clientv3.Client
	prefix string
}

func connectEtcd(address string) (library, error) {
	parsed, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{parsed.Host}, DialTimeout: 10 * time.Second})
	return etcdLibrary{client, strings.TrimPrefix(parsed.Path, "/")}, err
}

func (l etcdLibrary) take(ctx context.Context, name string, ttl time.Duration, wait *time.Duration) (hold, error) {
	session, err := concurrency.NewSession(l.client, concurrency.WithTTL(int(ttl.Seconds())))
	if err != nil {
		return nil, err
	}
	mutex := concurrency.NewMutex(session, l.prefix+"/"+name)
	switch {
	case wait == nil:
		err = mutex.Lock(ctx)
	case *wait == 0:
		err = mutex.TryLock(ctx)
	default:
		limited, cancel := context.WithTimeout(ctx, *wait)
		defer cancel()
		err = mutex.Lock(limited)
	}
	if err == nil {
		return etcdHold{session, mutex}, nil
	}
	if errors.Is(err, concurrency.ErrLocked) || errors.Is(err, context.DeadlineExceeded) {
		err = errNotGranted
	}
	return nil, errors.Join(err, session.Close())
}

type etcdHold struct {
	session *concurrency.Session
	mutex   *concurrency.Mutex
}

func (h etcdHold) release(ctx context.Context) (bool, error) {
	err := h.mutex.Unlock(ctx)
	return err == nil, errors.Join(err, h.session.Close())
}

func (h etcdHold) extend(context.Context, time.Duration) error {
	return errors.New("a session is kept alive, not extended")
}
