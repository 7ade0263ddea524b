// Command actor is redsync, bsm/redislock or etcd's own client as an actor; tests/README.md has the protocol.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
)

// library is one of the clients.
type library interface {
	// take tries once if wait is zero, and for ever if there is none.
	take(ctx context.Context, name string, ttl time.Duration, wait *time.Duration) (hold, error)
}

type hold interface {
	// release says whether the lock was still ours.
	release(ctx context.Context) (bool, error)
	extend(ctx context.Context, ttl time.Duration) error
}

var errNotGranted = errors.New("the lock was not granted")

// poll is quicker than the libraries' defaults, so that a case takes no longer than it must.
const poll = 10 * time.Millisecond

type options struct {
	TTL  *float64
	Wait *float64
}

type request struct {
	ID      uint64
	Op      string
	URL     string
	Lock    string
	Guard   uint64
	TTL     float64
	Options options
}

type refusal struct {
	Code      string `json:"code"`
	Message   string `json:"message"`
	Retryable bool   `json:"retryable"`
}

type actor struct {
	sync.Mutex
	library  library
	defaults options
	guards   map[uint64]hold
	last     uint64
}

func millis(time_ float64) time.Duration { return time.Duration(time_ * float64(time.Millisecond)) }

func (a *actor) take(asked request) (any, error) {
	ttl, wait := a.defaults.TTL, asked.Options.Wait
	if asked.Options.TTL != nil {
		ttl = asked.Options.TTL
	}
	if asked.Op == "try" {
		wait = new(float64)
	}
	var limit *time.Duration
	if wait != nil {
		some := millis(*wait)
		limit = &some
	}
	held, err := a.library.take(context.Background(), asked.Lock, millis(*ttl), limit)
	if errors.Is(err, errNotGranted) && asked.Op == "try" {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	a.Lock()
	defer a.Unlock()
	a.last++
	a.guards[a.last] = held
	return map[string]uint64{"guard": a.last, "token": 0}, nil
}

func (a *actor) guard(number uint64) hold {
	a.Lock()
	defer a.Unlock()
	return a.guards[number]
}

func (a *actor) do(asked request) (any, error) {
	switch asked.Op {
	case "ping":
		return map[string]any{"actor": os.Args[1], "pid": os.Getpid()}, nil
	case "connect":
		library, err := connect(os.Args[1], asked.URL)
		a.library, a.defaults = library, asked.Options
		return nil, err
	case "acquire", "try":
		return a.take(asked)
	case "release":
		ours, err := a.guard(asked.Guard).release(context.Background())
		if ours {
			return "released", err
		}
		return "already_lost", err
	case "extend":
		return nil, a.guard(asked.Guard).extend(context.Background(), millis(asked.TTL))
	}
	return nil, fmt.Errorf("this actor does not know %q", asked.Op)
}

func (a *actor) serve(asked request) {
	answer := map[string]any{"id": asked.ID}
	value, err := a.do(asked)
	switch {
	case errors.Is(err, errNotGranted):
		answer["error"] = refusal{"timeout", err.Error(), true}
	case err != nil:
		answer["error"] = refusal{"internal", err.Error(), false}
	default:
		answer["ok"] = value
	}
	line, _ := json.Marshal(answer)
	a.Lock()
	defer a.Unlock()
	fmt.Println(string(line))
}

func main() {
	actor := &actor{guards: map[uint64]hold{}}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var asked request
		if err := json.Unmarshal(lines.Bytes(), &asked); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		switch asked.Op {
		case "crash":
			os.Exit(9)
		case "connect":
			actor.serve(asked)
		default:
			go actor.serve(asked)
		}
	}
}
