package control

import (
	"crypto/tls"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"headgate/internal/testhouse"
)

// talk sends random amounts over a connection that echoes them, until stop is
// closed, and holds that every byte comes back. It returns how many did.
func talk(c net.Conn, seed uint64, stop chan struct{}) (int64, error) {
	random := rand.New(rand.NewPCG(seed, 1))
	var total int64
	sent, got := make([]byte, 256<<10), make([]byte, 256<<10)
	for i := range sent {
		sent[i] = byte(random.Uint32())
	}
	for {
		select {
		case <-stop:
			return total, nil
		default:
		}
		c.SetDeadline(time.Now().Add(patience))
		at := random.IntN(len(sent) / 2)
		n := 1 + random.IntN(500)
		if random.IntN(4) == 0 {
			n = 1 + random.IntN(len(sent)/2)
		}
		wrote := make(chan error, 1)
		go func() {
			_, err := c.Write(sent[at : at+n])
			wrote <- err
		}()
		_, err := io.ReadFull(c, got[:n])
		if werr := <-wrote; err == nil {
			err = werr
		}
		if err != nil {
			return total, fmt.Errorf("after %d bytes: %w", total, err)
		}
		if string(got[:n]) != string(sent[at:at+n]) {
			return total, fmt.Errorf("after %d bytes: others came back than were sent", total)
		}
		total += int64(n)
	}
}

func TestTwentyChangesUnderLoadLoseNoByte(t *testing.T) {
	at := testhouse.Addresses(t, 6)
	raw := func(c net.Conn) { io.Copy(c, c) }
	a, b := testhouse.Server(t, raw), testhouse.Server(t, raw)
	other := httptest.NewTLSServer(nil)
	t.Cleanup(other.Close)
	certificate := other.TLS.Certificates[0]
	secret := testhouse.Server(t, func(c net.Conn) {
		s := tls.Server(c, &tls.Config{Certificates: []tls.Certificate{certificate}})
		io.Copy(s, s)
	})
	// The configuration of a change: ports and servers come, go and move around
	// what is being used.
	text := func(i int) string {
		servers := []string{a, b}
		one, other := servers[i%2], servers[(i+1)%2]
		return fmt.Sprintf(`version: 1
admin: {address: ""}
access_log: {enabled: false}
ports:
  secure: {address: %q, protocol: https}
  web: {address: %q, protocol: http}
proxies:
  all: {routes: [{fixed_response: {status: %d}}]}
tcp_proxies:
  same: {address: %q, servers: [{address: %q}]}
  changing: {address: %q, servers: [{address: %q}, {address: %q, weight: %d}], idle_timeout: %ds, connect_timeout: %ds}
  through: {port: secure, sni: [db.example.com, "n%d.example.com"], servers: [{address: %q}]}
  moving: {address: %q, servers: [{address: %q}], drain_timeout: 60s}
`, at[0], at[1+i%2], 200+i, at[3], a, at[4], one, other, i, 60+i, 1+i, i, secret, []string{at[5], at[2-i%2]}[i/10%2], a)
	}
	h := start(t, text(0))
	stop := make(chan struct{})
	var all sync.WaitGroup
	var bytes, connections atomic.Int64
	run := func(i int, dial func() (net.Conn, error), long bool) {
		all.Go(func() {
			for {
				c, err := dial()
				if err != nil {
					t.Errorf("client %d: %v", i, err)
					return
				}
				connections.Add(1)
				end := stop
				if !long {
					end = make(chan struct{})
					time.AfterFunc(5*time.Millisecond, func() { close(end) })
				}
				n, err := talk(c, uint64(i), end)
				bytes.Add(n)
				c.Close()
				if err != nil {
					t.Errorf("client %d: %v", i, err)
					return
				}
				select {
				case <-stop:
					return
				default:
				}
				testhouse.Pause()
			}
		})
	}
	for i := range 3 {
		for _, long := range []bool{true, false} {
			for _, address := range []string{at[3], at[4]} {
				run(i, func() (net.Conn, error) { return net.DialTimeout("tcp", address, patience) }, long)
			}
			run(10+i, func() (net.Conn, error) {
				return tls.Dial("tcp", at[0], &tls.Config{InsecureSkipVerify: true, ServerName: "db.example.com"})
			}, long)
		}
	}
	run(20, func() (net.Conn, error) { return net.DialTimeout("tcp", at[5], patience) }, true)
	for i := 1; i <= 20; i++ {
		before := bytes.Load()
		connected := connections.Load()
		testhouse.Eventually(t, "clients are served", func() bool { return bytes.Load() > before || connections.Load() > connected+3 || t.Failed() })
		h.apply(text(i % 20))
	}
	close(stop)
	all.Wait()
	t.Logf("%d bytes over %d connections", bytes.Load(), connections.Load())
}
