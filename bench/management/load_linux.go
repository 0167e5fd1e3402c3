package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// load is requests that reach a proxy at a steady rate, whatever it makes of them.
type load struct {
	mu    sync.Mutex
	took  []time.Duration
	lost  atomic.Int64
	stop  context.CancelFunc
	ended sync.WaitGroup
}

// clients is how many connections send the requests of a load.
const clients = 16

// startLoad sends requests until the load is ended. The time of each counts from when it had
// to be sent.
func startLoad(ctx context.Context, address string, status int) *load {
	ctx, stop := context.WithCancel(ctx)
	l := &load{stop: stop}
	each := time.Second * clients / time.Duration(*rate)
	for i := range clients {
		l.ended.Go(func() {
			client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1}, Timeout: 30 * time.Second}
			defer client.CloseIdleConnections()
			due := time.Now().Add(each * time.Duration(i) / clients)
			for ; ; due = due.Add(each) {
				select {
				case <-ctx.Done():
					return
				case <-time.After(time.Until(due)):
				}
				rs, err := client.Get("http://" + address + "/")
				if err == nil {
					_, err = io.Copy(io.Discard, rs.Body)
					rs.Body.Close()
				}
				if err != nil || rs.StatusCode != status {
					l.lost.Add(1)
				}
				l.mu.Lock()
				l.took = append(l.took, time.Since(due))
				l.mu.Unlock()
			}
		})
	}
	return l
}

// phase forgets what was, lets the load go on for a time, and returns what it was like.
func (l *load) phase(ctx context.Context, d time.Duration) times {
	l.mu.Lock()
	l.took = nil
	l.mu.Unlock()
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return timesOf(l.took)
}

func (l *load) end() { l.stop(); l.ended.Wait() }

// times are how long requests took.
type times struct {
	n        int
	p50, p99 time.Duration
}

func timesOf(all []time.Duration) times {
	if len(all) == 0 {
		return times{}
	}
	all = slices.Clone(all)
	slices.Sort(all)
	return times{len(all), all[len(all)/2], all[len(all)*99/100]}
}

// String tells the median and the 99th percentile.
func (t times) String() string {
	return fmt.Sprintf("p50 %v, p99 %v of %d", t.p50.Round(10*time.Microsecond), t.p99.Round(10*time.Microsecond), t.n)
}

// median returns the middle of some values.
func median[T ~int64 | ~float64](all []T) T {
	if len(all) == 0 {
		return 0
	}
	all = slices.Clone(all)
	slices.Sort(all)
	return all[len(all)/2]
}

// server answers every request at once with 200.
func server(ctx context.Context) (string, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hello") })}
	go s.Serve(l)
	context.AfterFunc(ctx, func() { s.Close() })
	return l.Addr().String(), nil
}

// follower reads the stream of events until it ends, and counts them.
func follower(address, token string, seen *atomic.Int64) (io.Closer, error) {
	c, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(c, "GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n", token)
	r := bufio.NewReaderSize(c, 512)
	line, err := r.ReadString('\n')
	if err != nil || len(line) < 12 || line[9:12] != "200" {
		c.Close()
		return nil, fmt.Errorf("%q, %v", line, err)
	}
	go func() {
		for {
			line, err := r.ReadSlice('\n')
			if err != nil && err != bufio.ErrBufferFull {
				return
			}
			if len(line) > 3 && string(line[:3]) == "id:" {
				seen.Add(1)
			}
		}
	}()
	return c, nil
}
