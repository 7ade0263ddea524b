// Command peers runs the Go contestants on the bench's courses; see src/subject/mod.rs for the protocol.
package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Locker waits for a lock as long as it takes, and returns how to let it go.
type Locker interface {
	Acquire(ctx context.Context, key string) (release func())
}

type course map[string]string

func (c course) number(name string) int {
	number, err := strconv.Atoi(c[name])
	must(err)
	return number
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func ready() {
	fmt.Println("ready")
	_, err := bufio.NewReader(os.Stdin).ReadString('\n')
	must(err)
}

func main() {
	words := course{}
	for _, word := range os.Args[3:] {
		name, value, _ := strings.Cut(word, "=")
		words[name] = value
	}
	var locker Locker
	switch os.Args[1] {
	case "redislock":
		locker = newRedislock(words["server"])
	case "redsync":
		servers := words["servers"]
		if servers == "" {
			servers = words["server"]
		}
		locker = newRedsync(strings.Split(servers, ","))
	case "rueidislock":
		locker = newRueidislock(words["server"])
	case "clientv3":
		locker = newEtcdLocker(words["server"])
	case "etcd-bare":
		locker = newEtcdBare(words["server"])
	case "go-zookeeper":
		locker = newZk(words["server"])
	default:
		must(fmt.Errorf("there is no contestant %q", os.Args[1]))
	}
	var figures map[string]any
	switch os.Args[2] {
	case "pair":
		figures = pair(locker, words)
	case "parallel":
		figures = parallel(locker, words)
	case "contend":
		figures = contend(locker, words)
	default:
		must(fmt.Errorf("there is no course %q", os.Args[2]))
	}
	must(json.NewEncoder(os.Stdout).Encode(figures))
	os.Exit(0)
}

func pair(locker Locker, words course) map[string]any {
	ctx, key, pairs := context.Background(), words["key"], words.number("pairs")
	for range pairs / 10 {
		locker.Acquire(ctx, key)()
	}
	ready()
	times := make([]float64, 0, pairs)
	acquires := make([]float64, 0, pairs)
	for range pairs {
		begin := time.Now()
		release := locker.Acquire(ctx, key)
		acquires = append(acquires, float64(time.Since(begin).Nanoseconds())/1000)
		release()
		times = append(times, float64(time.Since(begin).Nanoseconds())/1000)
	}
	sort.Float64s(times)
	sort.Float64s(acquires)
	at := func(part float64) float64 { return times[int(float64(len(times)-1)*part)] }
	return map[string]any{
		"p50_us": at(0.5), "p99_us": at(0.99), "pairs": pairs, "acquire_p50_us": acquires[len(acquires)/2],
	}
}

func parallel(locker Locker, words course) map[string]any {
	ctx := context.Background()
	var pairs atomic.Int64
	for number := range words.number("keys") {
		key := fmt.Sprintf("%s:%d", words["key"], number)
		locker.Acquire(ctx, key)()
		go func() {
			for {
				locker.Acquire(ctx, key)()
				pairs.Add(1)
			}
		}()
	}
	ready()
	begin, before := time.Now(), pairs.Load()
	time.Sleep(time.Duration(words.number("milliseconds")) * time.Millisecond)
	done := pairs.Load() - before
	return map[string]any{"pairs_per_s": float64(done) / time.Since(begin).Seconds()}
}

type tally struct {
	sync.Mutex
	acquired, handed, heldNs int64
	waitsSince               time.Time
	waits                    []int64
}

func contend(locker Locker, words course) map[string]any {
	ctx, first := context.Background(), uint64(words.number("first"))
	length := time.Duration(words.number("section_us")) * time.Microsecond
	turn := openTurn(words["turn"])
	tallies := make([]tally, words.number("tasks"))
	locker.Acquire(ctx, fmt.Sprintf("%s:warm:%d", words["key"], first))()
	ready()
	begin := time.Now()
	for number := range tallies {
		mine, me := &tallies[number], first+uint64(number)
		go func() {
			for {
				asked := time.Now()
				mine.Lock()
				mine.waitsSince = asked
				mine.Unlock()
				release := locker.Acquire(ctx, words["key"])
				won, last := time.Now(), turn.read()
				mine.Lock()
				mine.waitsSince = time.Time{}
				mine.acquired++
				if last != me {
					mine.handed++
					turn.write(me)
				}
				if length > 0 {
					mine.waits = append(mine.waits, won.Sub(asked).Microseconds())
				}
				mine.Unlock()
				if length > 0 {
					time.Sleep(length)
				}
				mine.Lock()
				mine.heldNs += time.Since(won).Nanoseconds()
				mine.Unlock()
				release()
			}
		}()
	}
	time.Sleep(time.Duration(words.number("milliseconds")) * time.Millisecond)
	acquired, waits := []int64{}, []int64{}
	var handed, heldNs int64
	now := time.Now()
	for number := range tallies {
		mine := &tallies[number]
		mine.Lock()
		acquired = append(acquired, mine.acquired)
		handed += mine.handed
		heldNs += mine.heldNs
		waits = append(waits, mine.waits...)
		if !mine.waitsSince.IsZero() {
			waits = append(waits, now.Sub(mine.waitsSince).Microseconds())
		}
		mine.Unlock()
	}
	return map[string]any{
		"acquired": acquired, "handed": handed, "held_s": float64(heldNs) / 1e9,
		"seconds": now.Sub(begin).Seconds(), "waits_us": waits,
	}
}

// turn says who had the lock last: in memory, or in a file that several processes share.
type turn struct {
	memory atomic.Uint64
	file   *os.File
}

func openTurn(path string) *turn {
	t := &turn{}
	t.memory.Store(1 << 63)
	if path != "" {
		var err error
		t.file, err = os.OpenFile(path, os.O_RDWR, 0)
		must(err)
	}
	return t
}

func (t *turn) read() uint64 {
	if t.file == nil {
		return t.memory.Load()
	}
	var bytes [8]byte
	_, err := t.file.ReadAt(bytes[:], 0)
	must(err)
	return binary.LittleEndian.Uint64(bytes[:])
}

func (t *turn) write(me uint64) {
	if t.file == nil {
		t.memory.Store(me)
		return
	}
	var bytes [8]byte
	binary.LittleEndian.PutUint64(bytes[:], me)
	_, err := t.file.WriteAt(bytes[:], 0)
	must(err)
}
