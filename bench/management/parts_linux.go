package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// one is a proxy before a server.
func one(ctx context.Context, more string) (*gate, error) {
	address, err := server(ctx)
	if err != nil {
		return nil, err
	}
	return startGate(ctx, fmt.Sprintf("access_log: {enabled: false%s}\nproxies: {shop: {routes: [{servers: [{url: \"http://%s\"}]}]}}\n", more, address))
}

// followers is how many clients of the stream of events there are.
const followers = 1000

// streams measures a thousand clients of the stream of events: what they cost in memory,
// and those whose requests are served, while nothing happens and while much does.
func streams(ctx context.Context) error {
	var each []float64
	for range *rounds {
		g, err := one(ctx, "")
		if err != nil {
			return err
		}
		token, err := g.token()
		if err != nil {
			return err
		}
		l := startLoad(ctx, g.web, 200)
		l.phase(ctx, *length/2)
		from := g.cpu()
		before, used, without := l.phase(ctx, *length), g.memory(), g.cpu()-from
		var seen atomic.Int64
		var all []io.Closer
		for range followers {
			c, err := follower(g.admin, token, &seen)
			if err != nil {
				return err
			}
			all = append(all, c)
		}
		l.phase(ctx, *length/4)
		from = g.cpu()
		quiet, now, with := l.phase(ctx, *length), g.memory(), g.cpu()-from
		each = append(each, float64(now-used)/followers/1024)
		busy := make(chan times)
		go func() { busy <- l.phase(ctx, *length) }()
		changes := 0
		for end := time.Now().Add(*length - time.Second); time.Now().Before(end); changes++ {
			if err := g.call("PATCH", "/proxies/shop", map[string]string{"description": fmt.Sprint("x", changes)}, nil); err != nil {
				return err
			}
			time.Sleep(200 * time.Millisecond)
		}
		fmt.Printf("  before: %v; %d clients, idle: %v; %d changes told to each: %v (%d events seen); %.1f KiB each; processor %.1f %% before, %.1f %% while idle\n", before, followers, quiet, changes, <-busy, seen.Load(), each[len(each)-1],
			100*without.Seconds()/length.Seconds(), 100*with.Seconds()/length.Seconds())
		for _, c := range all {
			c.Close()
		}
		l.end()
		if n := l.lost.Load(); n > 0 {
			fmt.Printf("  %d requests lost\n", n)
		}
		g.stop()
	}
	fmt.Printf("  memory of each client, median: %.1f KiB\n", median(each))
	return nil
}

// edits changes a proxy a hundred times a second under load.
func edits(ctx context.Context) error {
	g, err := one(ctx, "")
	if err != nil {
		return err
	}
	defer g.stop()
	l := startLoad(ctx, g.web, 200)
	before := l.phase(ctx, *length)
	during := make(chan times)
	long := 6 * *length
	go func() { during <- l.phase(ctx, long) }()
	var mu sync.Mutex
	var took []time.Duration
	refused := 0
	begun := time.Now()
	var all sync.WaitGroup
	const writers = 4
	for w := range writers {
		all.Go(func() {
			for n, due := 0, begun.Add(time.Duration(w)*10*time.Millisecond); time.Since(begun) < long; n, due = n+1, due.Add(writers*10*time.Millisecond) {
				time.Sleep(time.Until(due))
				at := time.Now()
				err := g.call("PATCH", "/proxies/shop", map[string]string{"description": fmt.Sprint("x", w, "-", n)}, nil)
				mu.Lock()
				if took = append(took, time.Since(at)); err != nil {
					refused++
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	now := <-during
	l.end()
	kept, next := 0, ""
	for {
		var page struct {
			Items []struct{ Number int }
			Next  string
		}
		if err := g.call("GET", "/revisions?limit=1000"+next, nil, &page); err != nil {
			return err
		}
		kept += len(page.Items)
		if next = "&cursor=" + page.Next; page.Next == "" {
			break
		}
	}
	fmt.Printf("  before: %v; %d edits in %v (%.0f a second, %v): %v; refused %d; requests lost %d of %d; revisions kept %d; memory %d MiB\n",
		before, len(took), time.Since(begun).Round(time.Second), float64(len(took))/time.Since(begun).Seconds(), timesOf(took), now, refused, l.lost.Load(), now.n, kept, g.memory()>>20)
	return nil
}

// passwords guesses a thousand passwords a second, from one address and from many.
func passwords(ctx context.Context) error {
	g, err := one(ctx, "")
	if err != nil {
		return err
	}
	defer g.stop()
	const good = "correct horse battery"
	if err := g.call("POST", "/users", map[string]string{"name": "ann", "role": "admin", "password": good}, nil); err != nil {
		return err
	}
	token, err := g.token()
	if err != nil {
		return err
	}
	l := startLoad(ctx, g.web, 200)
	defer l.end()
	fmt.Printf("  before: %v\n", l.phase(ctx, *length))
	for i := range sittings * maxSignIns * 2 { // where ann has been before
		if status, err := signIn(ctx, g.admin, annAt(i), "ann", good); err != nil || status != http.StatusCreated {
			return fmt.Errorf("ann signs in: %d, %v", status, err)
		}
	}
	for round, many := range []bool{false, true} {
		guesser := exec.CommandContext(ctx, os.Args[0], "-guess", g.admin, "-many="+strconv.FormatBool(many), "-length", (*length * 2).String())
		var answers bytes.Buffer
		guesser.Stdout, guesser.Stderr = &answers, os.Stderr
		if err := guesser.Start(); err != nil {
			return err
		}
		l.phase(ctx, *length/2)
		var operator []time.Duration
		signedIn, tried := 0, 0
		during := make(chan times)
		used := g.cpu()
		go func() { during <- l.phase(ctx, *length) }()
		for end := time.Now().Add(*length - time.Second); time.Now().Before(end); tried++ {
			at := time.Now()
			if err := get(g.admin, token); err != nil {
				fmt.Println("  another operator:", err)
			}
			operator = append(operator, time.Since(at))
			if tried < sittings*maxSignIns {
				if status, err := signIn(ctx, g.admin, annAt(round*sittings*maxSignIns+tried), "ann", good); err == nil && status == http.StatusCreated {
					signedIn++
				}
			}
			time.Sleep(*length / (sittings * maxSignIns))
		}
		now, cpu := <-during, g.cpu()-used
		if err := guesser.Wait(); err != nil {
			return err
		}
		fmt.Printf("  from many addresses %v: proxy %v, lost %d; another operator asks: %v; ann signs in where she has been before: %d of %d; processor %.0f %%; answers to guesses %s\n",
			many, now, l.lost.Load(), timesOf(operator), signedIn, min(tried, sittings*maxSignIns), 100*cpu.Seconds()/length.Seconds(), strings.TrimSpace(answers.String()))
	}
	return nil
}

// How often ann signs in during a phase, from how many addresses.
const (
	sittings   = 4
	maxSignIns = 5
)

func annAt(i int) string { return fmt.Sprintf("127.200.%d.9", 1+i/maxSignIns) }

// guessAll guesses a thousand passwords a second, in a process of its own, so that it is
// not in the way of who measures.
func guessAll(ctx context.Context, address string, many bool) error {
	ctx, stop := context.WithTimeout(ctx, *length)
	defer stop()
	var answers sync.Map
	var all sync.WaitGroup
	begun := time.Now()
	for i := range 50 {
		all.Go(func() { guess(ctx, address, i, many, &answers) })
	}
	all.Wait()
	counts, sum := map[any]int64{}, int64(0)
	answers.Range(func(k, v any) bool { counts[k] = v.(*atomic.Int64).Load(); sum += counts[k]; return true })
	fmt.Printf("%v, %.0f a second\n", counts, float64(sum)/time.Since(begun).Seconds())
	return nil
}

// guess signs in with wrong passwords, 20 times a second.
func guess(ctx context.Context, address string, i int, many bool, answers *sync.Map) {
	due := time.Now()
	for n := 0; ; n++ {
		due = due.Add(50 * time.Millisecond)
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Until(due)):
		}
		from := "127.0.0.1"
		if many {
			from = fmt.Sprintf("127.%d.%d.%d", 1+i, n/250%250, 1+n%250)
		}
		status, err := signIn(ctx, address, from, "ann", fmt.Sprint("wrong password ", n))
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			status = -1
		}
		count, _ := answers.LoadOrStore(status, &atomic.Int64{})
		count.(*atomic.Int64).Add(1)
	}
}

func signIn(ctx context.Context, address, from, user, password string) (int, error) {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	client := &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{DisableKeepAlives: true, DialContext: d.DialContext}}
	body, err := json.Marshal(map[string]string{"user": user, "password": password})
	if err != nil {
		return 0, err
	}
	rq, err := http.NewRequestWithContext(ctx, "POST", "http://"+address+"/api/v1/session", bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	rq.Header.Set("Content-Type", "application/json")
	rs, err := client.Do(rq)
	if err != nil {
		return 0, err
	}
	rs.Body.Close()
	return rs.StatusCode, nil
}

func get(address, token string) error {
	rq, err := http.NewRequest("GET", "http://"+address+"/api/v1/proxies", nil)
	if err != nil {
		return err
	}
	rq.Header.Set("Authorization", "Bearer "+token)
	rs, err := http.DefaultClient.Do(rq)
	if err != nil {
		return err
	}
	defer rs.Body.Close()
	_, err = io.Copy(io.Discard, rs.Body)
	if err == nil && rs.StatusCode != 200 {
		err = fmt.Errorf("%s", rs.Status)
	}
	return err
}

// ring measures the time of processors that a request takes with the ring of recent
// requests and without.
func ring(ctx context.Context) error {
	const requests = 100_000
	var on, off, ratio []float64
	for range *rounds {
		var both [2]float64
		for i, more := range []string{"", ", recent: {enabled: false}"} {
			g, err := one(ctx, more)
			if err != nil {
				return err
			}
			hammer(g.web, requests/10)
			used := g.cpu()
			lost := hammer(g.web, requests)
			both[i] = float64((g.cpu() - used).Microseconds()) / requests
			g.stop()
			if lost > 0 {
				return fmt.Errorf("%d requests lost", lost)
			}
		}
		on, off, ratio = append(on, both[0]), append(off, both[1]), append(ratio, both[0]/both[1])
		fmt.Printf("  with the ring %.2f µs a request, without %.2f µs: %+.1f %%\n", both[0], both[1], 100*(both[0]/both[1]-1))
	}
	fmt.Printf("  medians: with %.2f µs, without %.2f µs, %+.1f %%\n", median(on), median(off), 100*(median(ratio)-1))
	return nil
}

// hammer sends requests one after the other on 16 connections, and returns how many were
// not answered with 200.
func hammer(address string, n int) (lost int64) {
	var left, bad atomic.Int64
	left.Store(int64(n))
	var all sync.WaitGroup
	for range clients {
		all.Go(func() {
			c, err := net.Dial("tcp", address)
			if err != nil {
				bad.Add(1)
				return
			}
			defer c.Close()
			p := make([]byte, 4096)
			for left.Add(-1) >= 0 {
				io.WriteString(c, "GET / HTTP/1.1\r\nHost: shop.example.com\r\n\r\n")
				m, err := c.Read(p) // small answers come at once
				for err == nil && !bytes.HasSuffix(p[:m], []byte("hello")) {
					var k int
					k, err = c.Read(p[m:])
					m += k
				}
				if err != nil || !strings.HasPrefix(string(p[:m]), "HTTP/1.1 200") {
					bad.Add(1)
					return
				}
			}
		})
	}
	all.Wait()
	return bad.Load()
}

// many edits one of ten thousand proxies, and asks it until it answers otherwise.
func many(ctx context.Context) error {
	const proxies = 10_000
	var b strings.Builder
	b.WriteString("access_log: {enabled: false}\nproxies:\n")
	for i := range proxies {
		fmt.Fprintf(&b, "  p%05d: {virtual_hosts: [p%05d.example.com], routes: [{path: /, servers: [{url: \"http://127.0.0.1:9\"}]}, {path: /state, fixed_response: {status: 200}}]}\n", i, i)
	}
	g, err := startGate(ctx, b.String())
	if err != nil {
		return err
	}
	defer g.stop()
	before, used := g.memory(), g.cpu()
	var acts, answered []time.Duration
	client := &http.Client{Timeout: time.Minute}
	for i := range *changes {
		name, status := fmt.Sprintf("p%05d", (i*997)%proxies), 201+i%2
		begun := time.Now()
		done := make(chan error, 1)
		go func() {
			body := map[string]any{"routes": []any{map[string]any{"path": "/", "servers": []any{map[string]string{"url": "http://127.0.0.1:9"}}},
				map[string]any{"path": "/state", "fixed_response": map[string]int{"status": status}}}}
			err := g.call("PATCH", "/proxies/"+name, body, nil)
			answered = append(answered, time.Since(begun))
			done <- err
		}()
		for {
			rq, err := http.NewRequest("GET", "http://"+g.web+"/state", nil)
			if err != nil {
				return err
			}
			rq.Host = name + ".example.com"
			rs, err := client.Do(rq)
			if err != nil {
				return err
			}
			rs.Body.Close()
			if rs.StatusCode == status {
				break
			}
			if time.Since(begun) > time.Minute {
				return fmt.Errorf("the edit of %s does not act", name)
			}
			time.Sleep(500 * time.Microsecond)
		}
		acts = append(acts, time.Since(begun))
		if err := <-done; err != nil {
			return err
		}
	}
	var gets, pages []time.Duration
	for i := range 200 {
		at := time.Now()
		if err := g.call("GET", fmt.Sprintf("/proxies/p%05d", i*49), nil, nil); err != nil {
			return err
		}
		gets = append(gets, time.Since(at))
		at = time.Now()
		if err := g.call("GET", "/proxies?limit=100", nil, nil); err != nil {
			return err
		}
		pages = append(pages, time.Since(at))
	}
	fmt.Printf("  an edit among %d proxies acts after: %v; is answered after: %v; processor %v each; memory %d MiB before, %d MiB after %d edits\n",
		proxies, timesOf(acts), timesOf(answered), ((g.cpu() - used) / time.Duration(*changes)).Round(time.Millisecond), before>>20, g.memory()>>20, *changes)
	fmt.Printf("  GET of one: %v; of a page of 100: %v\n", timesOf(gets), timesOf(pages))
	return nil
}
