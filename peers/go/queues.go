package main

import (
	"context"
	"time"

	"github.com/go-zookeeper/zk"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

func newEtcd(server string) *clientv3.Client {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{server}, DialTimeout: 10 * time.Second})
	must(err)
	return client
}

// etcdLocker is etcd's own recipe. Its mutex belongs to a session, so every task that waits or holds has one; they are used again.
type etcdLocker struct {
	client *clientv3.Client
	idle   chan *concurrency.Session
}

func newEtcdLocker(server string) Locker {
	return etcdLocker{newEtcd(server), make(chan *concurrency.Session, 1024)}
}

func (l etcdLocker) session() *concurrency.Session {
	select {
	case session := <-l.idle:
		return session
	default:
		session, err := concurrency.NewSession(l.client, concurrency.WithTTL(int(ttl.Seconds())))
		must(err)
		return session
	}
}

func (l etcdLocker) Acquire(ctx context.Context, key string) func() {
	session := l.session()
	mutex := concurrency.NewMutex(session, key)
	must(mutex.Lock(ctx))
	return func() {
		must(mutex.Unlock(ctx))
		l.idle <- session
	}
}

// etcdBare is the floor: a transaction that creates the key, and its removal. It does not wait.
type etcdBare struct {
	client *clientv3.Client
	lease  clientv3.LeaseID
}

func newEtcdBare(server string) Locker {
	client := newEtcd(server)
	lease, err := client.Grant(context.Background(), int64(time.Hour.Seconds()))
	must(err)
	return etcdBare{client, lease.ID}
}

func (l etcdBare) Acquire(ctx context.Context, key string) func() {
	absent := clientv3.Compare(clientv3.CreateRevision(key), "=", 0)
	_, err := l.client.Txn(ctx).If(absent).Then(clientv3.OpPut(key, "", clientv3.WithLease(l.lease))).Commit()
	must(err)
	return func() {
		_, err := l.client.Delete(ctx, key)
		must(err)
	}
}

// zkLocker is the recipe of go-zookeeper.
type zkLocker struct{ connection *zk.Conn }

func newZk(server string) Locker {
	connection, _, err := zk.Connect([]string{server}, ttl, zk.WithLogInfo(false))
	must(err)
	return zkLocker{connection}
}

func (l zkLocker) Acquire(_ context.Context, key string) func() {
	lock := zk.NewLock(l.connection, "/"+key, zk.WorldACL(zk.PermAll))
	must(lock.Lock())
	return func() { must(lock.Unlock()) }
}
