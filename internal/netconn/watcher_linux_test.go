package netconn_test

import (
	"bytes"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"headgate/internal/netconn"
	"headgate/internal/testhouse"
)

// socketRelay is relay over sockets of our own.
func socketRelay(t *testing.T, idle time.Duration) (r *netconn.Relay, client, server *net.TCPConn, end chan error) {
	t.Helper()
	over := func(t testing.TB) (*netconn.Conn, *net.TCPConn) {
		near, far := sockets(t)
		return netconn.New(near), far
	}
	return relayOver(t, over, idle)
}

// Pieces of all sizes, readers of all speeds, and ends or resets at any moment: what
// arrives is what was sent, in order, whoever carries it, and all of it where nobody has
// reset the connection.
func TestNothingCarriedIsLost(t *testing.T) {
	var all sync.WaitGroup
	for seed := range uint64(32) {
		make := relay
		if seed%2 == 0 {
			make = socketRelay
		}
		r, client, server, end := make(t, time.Minute)
		all.Go(func() { scramble(t, seed, r, client, server, end) })
	}
	all.Wait()
	awaitParked(t, 0)
}

// scramble sends random pieces both ways over a relay until its end, and looks at what
// arrives and at what is counted.
func scramble(t *testing.T, seed uint64, r *netconn.Relay, client, server *net.TCPConn, end chan error) {
	random := rand.New(rand.NewPCG(seed, 7))
	resets := random.IntN(3) == 0
	texts := [2][]byte{scrambled(random), scrambled(random)} // to the server, to the client
	var got [2][]byte
	var all sync.WaitGroup
	for way, ends := range [][2]*net.TCPConn{{client, server}, {server, client}} {
		sends := rand.New(rand.NewPCG(seed, uint64(way)))
		takes := rand.New(rand.NewPCG(seed, uint64(way)+2))
		all.Go(func() {
			for rest := texts[way]; len(rest) > 0; {
				n := min(len(rest), 1+sends.IntN(1<<sends.IntN(18)))
				if _, err := ends[0].Write(rest[:n]); err != nil {
					ends[0].Close() // so that its reader ends too
					if !resets {
						t.Errorf("relay %d, way %d: %v", seed, way, err)
					}
					return
				}
				rest = rest[n:]
			}
			if resets && way == int(seed)&1 {
				ends[0].SetLinger(0)
				ends[0].Close()
				return
			}
			ends[0].CloseWrite()
		})
		all.Go(func() {
			for {
				p := make([]byte, 1+takes.IntN(1<<takes.IntN(17)))
				n, err := ends[1].Read(p)
				got[way] = append(got[way], p[:n]...)
				if err == io.EOF || err != nil && resets {
					return
				}
				if err != nil {
					t.Errorf("relay %d, way %d: %v", seed, way, err)
					return
				}
			}
		})
	}
	all.Wait()
	err := <-end
	up, down := r.Moved()
	for way, counted := range []int64{up, down} {
		text := texts[way]
		if !bytes.HasPrefix(text, got[way]) {
			t.Errorf("relay %d, way %d: other bytes arrived than were sent", seed, way)
		}
		if int64(len(got[way])) > counted || counted > int64(len(text)) {
			t.Errorf("relay %d, way %d: %d bytes sent, %d counted, %d arrived", seed, way, len(text), counted, len(got[way]))
		}
		if !resets && (err != nil || len(got[way]) != len(text)) {
			t.Errorf("relay %d, way %d: %d bytes of %d, %v", seed, way, len(got[way]), len(text), err)
		}
	}
	if r.Up.Load() != uint64(up) || r.Down.Load() != uint64(down) {
		t.Errorf("relay %d: %d and %d bytes moved, %d and %d counted", seed, up, down, r.Up.Load(), r.Down.Load())
	}
}

// scrambled returns a text of any length.
func scrambled(random *rand.Rand) []byte {
	text := make([]byte, 1+random.IntN(1<<random.IntN(20)))
	for i := range text {
		text[i] = byte(random.Uint32())
	}
	return text
}

// A side that has ended in order and is then reset ends the relay at once, although
// nothing is written to it any more.
func TestAResetAfterTheEndOfASideEndsTheRelay(t *testing.T) {
	for name, carried := range map[string]bool{"carried": true, "by a goroutine": false} {
		t.Run(name, func(t *testing.T) {
			near, client := sockets(t)
			toServer, server := sockets(t)
			if !carried {
				client.CloseWrite() // before anything can be carried
			}
			_, end := join(netconn.New(near), netconn.New(toServer), client, server, time.Minute)
			if carried {
				awaitParked(t, 2)
				client.CloseWrite()
			}
			if n, err := server.Read(make([]byte, 1)); n != 0 || err != io.EOF {
				t.Fatalf("the server got %d bytes, %v, want the end", n, err)
			}
			awaitParked(t, 1)
			client.SetLinger(0)
			client.Close()
			var wrong *netconn.ClientError
			if err := <-end; !errors.As(err, &wrong) || !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.EPIPE) {
				t.Errorf("the relay ended with %v, want the client's reset", err)
			}
			awaitParked(t, 0)
		})
	}
}

// Who cuts a relay while its bytes are carried ends it.
func TestCutWhileBytesAreCarried(t *testing.T) {
	for range 50 {
		r, client, server, end := socketRelay(t, time.Minute)
		var busy sync.WaitGroup
		busy.Go(func() {
			for p := make([]byte, 100); ; {
				if _, err := client.Write(p); err != nil {
					return
				}
			}
		})
		io.ReadFull(server, make([]byte, 10))
		busy.Go(func() { io.Copy(io.Discard, server) })
		r.Cut()
		if err := <-end; err != netconn.ErrCut {
			t.Error(err)
		}
		client.Close()
		server.Close()
		busy.Wait()
	}
	awaitParked(t, 0)
}

// Who does not read makes his sender wait, and nobody else.
func TestASlowReaderHoldsUpNobodyElse(t *testing.T) {
	r, client, server, end := socketRelay(t, time.Minute)
	_, otherClient, otherServer, otherEnd := socketRelay(t, time.Minute)
	text := bytes.Repeat([]byte("0123456789abcdef"), 1<<20)
	sent := make(chan error, 1)
	go func() {
		for rest := text; len(rest) > 0; rest = rest[min(1000, len(rest)):] {
			if _, err := client.Write(rest[:min(1000, len(rest))]); err != nil {
				sent <- err
				return
			}
		}
		sent <- client.CloseWrite()
	}()
	before := uint64(0)
	testhouse.Eventually(t, "the sender waits", func() bool {
		<-time.After(20 * time.Millisecond)
		now := r.Up.Load()
		stands := now == before && now > 0
		before = now
		return stands
	})
	if before >= uint64(len(text)) {
		t.Fatalf("all of %d bytes went to a server that reads nothing", before)
	}
	p := make([]byte, 4)
	for range 100 {
		pingpong(t, otherClient, otherServer, p)
		server.Write([]byte("back")) // the other direction goes on
		if _, err := io.ReadFull(client, p); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := io.ReadAll(server); err != nil || !bytes.Equal(got, text) {
		t.Errorf("%d bytes of %d, %v", len(got), len(text), err)
	}
	if err := <-sent; err != nil {
		t.Error(err)
	}
	for _, c := range []net.Conn{server, client, otherClient, otherServer} {
		c.Close()
	}
	if err := errors.Join(<-end, <-otherEnd); err != nil {
		t.Error(err)
	}
	awaitParked(t, 0)
}

// pingpong sends p there and back.
func pingpong(t *testing.T, client, server net.Conn, p []byte) {
	t.Helper()
	for _, way := range [][2]net.Conn{{client, server}, {server, client}} {
		way[0].Write(p)
		if _, err := io.ReadFull(way[1], p); err != nil {
			t.Fatal(err)
		}
	}
}

// More relays have something at once than a round takes: all are served, again and again.
func TestManyRelaysAreCarriedAtOnce(t *testing.T) {
	const many, rounds = 400, 5
	var ends [many]struct {
		client, server *net.TCPConn
		end            chan error
	}
	for i := range ends {
		_, ends[i].client, ends[i].server, ends[i].end = socketRelay(t, time.Minute)
	}
	awaitParked(t, 2*many)
	p := make([]byte, 100)
	for range rounds {
		resume := netconn.StopWatchers()
		for i := range ends {
			p[0] = byte(i)
			ends[i].client.Write(p)
		}
		resume()
		for i := range ends {
			if _, err := io.ReadFull(ends[i].server, p); err != nil || p[0] != byte(i) {
				t.Fatalf("relay %d: got %d, %v", i, p[0], err)
			}
		}
	}
	for i := range ends {
		ends[i].client.Close()
		ends[i].server.Close()
		if err := <-ends[i].end; err != nil {
			t.Error(err)
		}
	}
	awaitParked(t, 0)
}

// A read stops before an urgent byte. What is behind it goes on at once.
func TestUrgentBytesHoldNothingUp(t *testing.T) {
	for _, parked := range []bool{true, false} {
		_, client, server, end := socketRelay(t, time.Minute)
		if parked {
			awaitParked(t, 2)
		}
		raw, _ := client.SyscallConn()
		for range 3 {
			resume := netconn.StopWatchers() // all is there in one round
			client.Write([]byte("before"))
			raw.Control(func(fd uintptr) { unix.Sendto(int(fd), []byte("!"), unix.MSG_OOB, nil) })
			client.Write([]byte("behind"))
			resume()
			p := make([]byte, 12)
			if _, err := io.ReadFull(server, p); err != nil || string(p) != "beforebehind" {
				t.Fatalf("the server got %q, %v", p, err)
			}
		}
		client.Close()
		server.Close()
		if err := <-end; err != nil {
			t.Error(err)
		}
	}
	awaitParked(t, 0)
}

// waits are the ways to wait without a goroutine, for very long.
var waits = map[string]func(c, onto *netconn.Conn, resume func()) bool{
	"carried": func(c, onto *netconn.Conn, resume func()) bool {
		return netconn.Carry(onto, c, math.MaxInt64, func(int) {}, resume)
	},
	"parked": func(c, _ *netconn.Conn, resume func()) bool { return c.Park(math.MaxInt64, resume) },
}

// A connection whose descriptor was closed and given to another before it hears of that
// itself hears of it nevertheless, and the other is carried or parked on.
func TestADescriptorThatIsUsedAgain(t *testing.T) {
	for name, wait := range waits {
		t.Run(name, func(t *testing.T) {
			onto, _ := pair(t)
			for range 100 {
				near, _ := testhouse.Pair(t)
				first, number, gone := netconn.New(near), descriptor(near), make(chan struct{})
				if !wait(first, onto, func() { close(gone) }) {
					t.Fatal("it does not wait")
				}
				other, far := testhouse.Pair(t)
				file, err := other.File()
				if err != nil {
					t.Fatal(err)
				}
				near.Close() // but first does not hear of it yet
				nc, err := net.FileConn(file)
				if err != nil {
					t.Fatal(err)
				}
				file.Close()
				other.Close()
				again := nc.(*net.TCPConn)
				second, heard := netconn.New(again), make(chan struct{})
				if !wait(second, onto, func() { close(heard) }) {
					t.Fatal("the second does not wait")
				}
				first.Close()
				<-gone
				select {
				case <-heard:
					t.Fatal("the second was told of what the first should hear")
				default:
				}
				same := descriptor(again) == number
				far.SetLinger(0)
				far.Close()
				<-heard
				second.Close()
				if same {
					return
				}
			}
			t.Skip("no descriptor was used again")
		})
	}
	awaitParked(t, 0)
}

func descriptor(c syscall.Conn) (fd int) {
	raw, _ := c.SyscallConn()
	raw.Control(func(n uintptr) { fd = int(n) })
	return fd
}

// What the system has told of a connection that is closed meanwhile meets no other, also
// where the other has its place.
func TestOldNewsMeetsNobody(t *testing.T) {
	for name, wait := range waits {
		t.Run(name, func(t *testing.T) { oldNewsMeetsNobody(t, wait) })
	}
}

func oldNewsMeetsNobody(t *testing.T, wait func(c, onto *netconn.Conn, resume func()) bool) {
	onto, _ := pair(t)
	var keeper *netconn.Conn
	begin := func() (*netconn.Conn, chan struct{}) {
		for {
			c, _ := pair(t)
			resumed := make(chan struct{})
			if !wait(c, onto, func() { close(resumed) }) {
				t.Fatal("it does not wait")
			}
			if keeper == nil || netconn.ShareWatcher(c, keeper) {
				return c, resumed
			}
			c.Close()
			<-resumed
		}
	}
	keeper, kept := begin() // the goroutine stays, and what it knows of places
	first, gone := begin()
	news := netconn.NewsOf(first)
	if !netconn.IsNews(first, news) {
		t.Fatal("what is told of a connection does not meet it")
	}
	first.Close()
	<-gone
	for {
		second, gone := begin()
		met, shares := netconn.IsNews(second, news), netconn.SharesPlace(second, news)
		second.Close()
		<-gone
		if met {
			t.Fatal("old news met another connection")
		}
		if shares {
			break
		}
	}
	keeper.Close()
	<-kept
	awaitParked(t, 0)
}
