package interop

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	pb "google.golang.org/grpc/interop/grpc_testing"
)

// stateWatch observes the state of a gate whose process is replaced: that its lock is held at
// any moment, and that each change that was acknowledged has one record in the audit log.
type stateWatch struct {
	r    *replaced
	stop chan struct{}
	all  sync.WaitGroup

	free  int      // how often the lock was free
	tries int      // how often that was tried
	made  []string // names of tokens whose creation was acknowledged
}

// watchState observes until verify is called.
func (r *replaced) watchState() *stateWatch {
	w := &stateWatch{r: r, stop: make(chan struct{})}
	w.all.Go(w.tryLock)
	w.all.Go(w.change)
	return w
}

// running reports whether the watch goes on.
func (w *stateWatch) running() bool {
	select {
	case <-w.stop:
		return false
	case <-time.After(2 * time.Millisecond):
		return true
	}
}

// tryLock tries to get the lock, again and again.
func (w *stateWatch) tryLock() {
	for w.running() {
		free, err := lockFree(w.r.lock())
		if err != nil {
			w.r.t.Errorf("the lock of the state directory: %v", err)
			return
		}
		w.tries++
		if free {
			w.free++
		}
	}
}

// change creates a token after the other. What is rejected during an upgrade is tried again.
func (w *stateWatch) change() {
	for n := 0; w.running(); n++ {
		name := fmt.Sprintf("token-%d", n)
		for {
			rs, err := w.r.post("/api/v1/tokens", fmt.Sprintf(`{"name": %q, "role": "viewer"}`, name))
			if err == nil && rs == http.StatusCreated {
				w.made = append(w.made, name)
				break
			}
			if err == nil && rs != http.StatusServiceUnavailable {
				w.r.t.Errorf("create a token: status %d", rs)
				return
			}
			if !w.running() {
				return
			}
			if err != nil { // whether it was created is unknown
				break
			}
		}
		if len(w.made) >= 500 { // tokens are few
			return
		}
	}
}

// verify ends the watch and reports what was wrong. count is how many upgrades were made.
func (w *stateWatch) verify(count int) {
	t := w.r.t
	t.Helper()
	close(w.stop)
	w.all.Wait()
	if w.free > 0 {
		t.Errorf("the lock of the state directory was free %d times of %d", w.free, w.tries)
	}
	records := map[string]int{}
	upgrades := 0
	for cursor := ""; ; {
		var page struct {
			Items []struct {
				Action string `json:"action"`
				Object string `json:"object"`
			} `json:"items"`
			Next string `json:"next"`
		}
		if err := w.r.api("/audit?limit=1000"+cursor, &page); err != nil {
			t.Fatal(err)
		}
		for _, i := range page.Items {
			switch i.Action {
			case "process.upgrade":
				upgrades++
			default:
				records[i.Object]++
			}
		}
		if page.Next == "" {
			break
		}
		cursor = "&cursor=" + page.Next
	}
	missing := 0
	for _, name := range w.made {
		if n := records["token "+name] + records[name]; n != 1 {
			missing++
			if missing < 5 {
				t.Errorf("%s was created and has %d records in the audit log", name, n)
			}
		}
	}
	var events struct {
		Items []struct {
			Type string `json:"type"`
		} `json:"items"`
	}
	if err := w.r.api("/events/history?limit=1000&types=process.upgraded", &events); err != nil {
		t.Fatal(err)
	}
	if upgrades != count || len(events.Items) != count {
		t.Errorf("%d upgrades: %d records in the audit log, %d events", count, upgrades, len(events.Items))
	}
	t.Logf("the lock was tried %d times and never free; %d changes made, %d without a record", w.tries, len(w.made), missing)
}

// post sends a body to a path through the admin socket, and returns the status.
func (r *replaced) post(path, body string) (int, error) {
	link, err := os.MkdirTemp("", "hg")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(link)
	if err := os.Symlink(filepath.Join(r.dir, "state"), filepath.Join(link, "s")); err != nil {
		return 0, err
	}
	client := &http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(link, "s", "admin.sock"))
		}}}
	rs, err := client.Post("http://headgate"+path, "application/json", strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	defer rs.Body.Close()
	io.Copy(io.Discard, rs.Body)
	return rs.StatusCode, nil
}

// holdsFile reports whether a process has a file open.
func holdsFile(pid int, path string) bool {
	list, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	for _, e := range list {
		if to, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%s", pid, e.Name())); err == nil && to == path {
			return true
		}
	}
	return false
}

// duplexCall opens a bidirectional stream of gRPC that echoes.
func duplexCall(t *testing.T, address string, config *tls.Config) io.ReadWriteCloser {
	c, err := grpc.NewClient(address, grpc.WithTransportCredentials(credentials.NewTLS(config)))
	if err != nil {
		t.Error(err)
		return nil
	}
	stream, err := pb.NewTestServiceClient(c).FullDuplexCall(context.Background())
	if err != nil {
		c.Close()
		t.Errorf("gRPC stream: %v", err)
		return nil
	}
	return &duplex{stream: stream, end: c.Close}
}

// duplex is a stream of gRPC as a stream of bytes.
type duplex struct {
	stream pb.TestService_FullDuplexCallClient
	rest   bytes.Buffer // of the last message
	end    func() error
}

func (d *duplex) Write(p []byte) (int, error) {
	err := d.stream.Send(&pb.StreamingOutputCallRequest{Payload: &pb.Payload{Body: bytes.Clone(p)}})
	return len(p), err
}

func (d *duplex) Read(p []byte) (int, error) {
	if d.rest.Len() == 0 {
		m, err := d.stream.Recv()
		if err != nil {
			return 0, err
		}
		d.rest.Write(m.GetPayload().GetBody())
	}
	return d.rest.Read(p)
}

func (d *duplex) Close() error { return d.end() }

// datagramCount counts datagrams of a UDP proxy.
type datagramCount struct {
	t          *testing.T
	stop       chan struct{}
	once       sync.Once
	all        sync.WaitGroup
	sent, back int // valid after end
}

// countDatagrams sends a datagram after the other through a UDP proxy whose server echoes,
// until the count is verified: sessions start anew in the new process, which reads the same
// socket.
func countDatagrams(t *testing.T, address string) *datagramCount {
	t.Helper()
	c, err := net.Dial("udp", address)
	if err != nil {
		t.Fatal(err)
	}
	d := &datagramCount{t: t, stop: make(chan struct{})}
	d.all.Go(func() {
		p := make([]byte, 64)
		for {
			n, err := c.Read(p)
			if err != nil {
				return
			}
			if n == 8 {
				d.back++
			}
		}
	})
	d.all.Go(func() {
		defer func() {
			<-time.After(time.Second) // for the last answers
			c.Close()
		}()
		for {
			select {
			case <-d.stop:
				return
			case <-time.After(5 * time.Millisecond):
			}
			if _, err := c.Write(binary.BigEndian.AppendUint64(nil, uint64(d.sent))); err == nil {
				d.sent++
			}
		}
	})
	t.Cleanup(d.end)
	return d
}

// end ends the count.
func (d *datagramCount) end() {
	d.once.Do(func() { close(d.stop) })
	d.all.Wait()
}

// verify ends the count and reports it. UDP may lose a datagram when a machine is busy; what a
// session would lose that is not continued is far more.
func (d *datagramCount) verify() {
	d.t.Helper()
	d.end()
	d.t.Logf("UDP proxy: %d datagrams sent, %d answered, %d lost", d.sent, d.back, d.sent-d.back)
	if d.sent == 0 || d.sent-d.back > d.sent/20 {
		d.t.Errorf("UDP proxy: %d of %d datagrams were lost", d.sent-d.back, d.sent)
	}
}
