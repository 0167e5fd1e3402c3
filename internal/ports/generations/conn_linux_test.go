package generations

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"testing"
	"time"

	"golang.org/x/net/ipv4"

	"headgate/internal/netconn"
)

// shared is one socket that an old and a new process have, and a client of it.
type shared struct {
	t        *testing.T
	old, new *Conn
	client   *net.UDPConn
	ours     *os.File // of the relay, of the old process
	theirs   *os.File // of the new process
}

// share opens the socket for generations 1 and 2.
func share(t *testing.T) *shared {
	t.Helper()
	first, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	f, err := first.File()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	second, err := net.FilePacketConn(f)
	if err != nil {
		t.Fatal(err)
	}
	s := &shared{t: t}
	for at, c := range map[**Conn]*net.UDPConn{&s.old: first, &s.new: second.(*net.UDPConn)} {
		d, err := netconn.NewDatagrams(c, func(op string, err error) { t.Errorf("%s: %v", op, err) })
		if err != nil {
			t.Fatal(err)
		}
		*at = New(d, map[**Conn]byte{&s.old: 1, &s.new: 2}[at])
	}
	if s.client, err = net.DialUDP("udp4", nil, first.LocalAddr().(*net.UDPAddr)); err != nil {
		t.Fatal(err)
	}
	if s.ours, s.theirs, err = Relay(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, c := range []interface{ Close() error }{s.client, s.old, s.new, s.ours, s.theirs} {
			c.Close()
		}
	})
	return s
}

// handOver has the new process read the socket.
func (s *shared) handOver() {
	s.t.Helper()
	if err := s.old.Leave(s.ours); err != nil {
		s.t.Fatal(err)
	}
	if err := s.new.Join(s.theirs); err != nil {
		s.t.Fatal(err)
	}
}

func (s *shared) send(b []byte) {
	s.t.Helper()
	if _, err := s.client.Write(b); err != nil {
		s.t.Fatal(err)
	}
}

// received is what a process has read.
type received struct {
	all [][]byte
	err error
}

// read reads n datagrams of a process on a goroutine.
func read(c *Conn, n int) <-chan received {
	out := make(chan received, 1)
	go func() {
		var r received
		for len(r.all) < n && r.err == nil {
			ms := make([]ipv4.Message, 8)
			for i := range ms {
				ms[i].Buffers, ms[i].OOB = [][]byte{make([]byte, 2048)}, make([]byte, 128)
			}
			var got int
			got, r.err = c.ReadBatch(ms, 0)
			for i := range got {
				r.all = append(r.all, bytes.Clone(ms[i].Buffers[0][:ms[i].N]))
			}
		}
		out <- r
	}()
	return out
}

// expect waits for what a process reads.
func expect(t *testing.T, who string, from <-chan received, want ...[]byte) {
	t.Helper()
	select {
	case r := <-from:
		if r.err != nil || len(r.all) != len(want) {
			t.Fatalf("%s reads %d datagrams, %v, want %d", who, len(r.all), r.err, len(want))
		}
		for i := range want {
			if !bytes.Equal(r.all[i], want[i]) {
				t.Errorf("%s reads %q, want %q", who, r.all[i], want[i])
			}
		}
	case <-time.After(30 * time.Second):
		t.Fatalf("%s reads nothing", who)
	}
}

// initial is a datagram that starts a connection, with an ID that the client chose.
func initial(id, text string) []byte {
	return append(append([]byte{0xc0, 0, 0, 0, 1, byte(len(id))}, id...), text...)
}

// short is a datagram of a connection of a generation.
func short(t *testing.T, generation byte, text string) []byte {
	t.Helper()
	id, err := IDs{generation}.GenerateConnectionID()
	if err != nil {
		t.Fatal(err)
	}
	return append(append([]byte{0x40}, id.Bytes()...), text...)
}

// TestLargeClientHelloIsNotSplit checks a ClientHello in two datagrams, as that of a client
// with ML-KEM, of which the first arrives before an upgrade and the second after it: both go
// to the old process, which has the first half. A new handshake goes to the new process.
func TestLargeClientHelloIsNotSplit(t *testing.T) {
	s := share(t)
	first, second, other := initial("chosen-id", "first half"), initial("chosen-id", "second half"), initial("another", "whole")
	old := read(s.old, 1)
	s.send(first)
	expect(t, "the old process", old, first)
	s.handOver()
	old, fresh := read(s.old, 1), read(s.new, 1)
	s.send(second)
	s.send(other)
	expect(t, "the old process", old, second)
	expect(t, "the new process", fresh, other)
}

// TestDatagramsGoToTheirGeneration sends those of both processes in one burst: each process
// gets its own, in their order, and none is lost. Buffers keep their places.
func TestDatagramsGoToTheirGeneration(t *testing.T) {
	s := share(t)
	s.handOver()
	var olds, news [][]byte
	for i := range 40 {
		o, n := short(t, 1, fmt.Sprint("old ", i)), short(t, 2, fmt.Sprint("new ", i))
		olds, news = append(olds, o), append(news, n)
		s.send(o)
		s.send(n)
	}
	old, fresh := read(s.old, len(olds)), read(s.new, len(news))
	expect(t, "the old process", old, olds...)
	expect(t, "the new process", fresh, news...)
}

// TestOldProcessReadsAgain checks that the socket is read by the old process when the new one
// has closed it, by its end or after a failure.
func TestOldProcessReadsAgain(t *testing.T) {
	s := share(t)
	s.handOver()
	old := read(s.old, 2)
	relayed := short(t, 1, "relayed")
	fresh := read(s.new, 1)
	s.send(relayed)
	own := short(t, 2, "of the new process")
	s.send(own)
	expect(t, "the new process", fresh, own)
	s.new.Close()
	s.theirs.Close()
	direct := initial("id", "after its end")
	s.send(direct)
	expect(t, "the old process", old, relayed, direct)
}

// TestNewProcessOutlivesTheOldOne checks that datagrams of a process that has ended are
// dropped or read, and that the others still arrive.
func TestNewProcessOutlivesTheOldOne(t *testing.T) {
	s := share(t)
	s.handOver()
	s.old.Close()
	s.ours.Close()
	fresh := read(s.new, 2)
	late, own := short(t, 1, "too late"), short(t, 2, "own")
	s.send(late)
	s.send(own)
	// The first write to the relay reports its end, so that datagram is not in the batch.
	again := short(t, 2, "again")
	s.send(again)
	expect(t, "the new process", fresh, own, again)
}

func FuzzSift(f *testing.F) {
	f.Add([]byte("\xc0\x00\x00\x00\x01\x04abcd"), []byte("\x40short"), true)
	f.Fuzz(func(t *testing.T, one, two []byte, noted bool) {
		if len(one) > 1024 || len(two) > 1024 {
			return
		}
		c := &Conn{own: 2}
		if noted {
			id, _ := destination(one)
			c.note(id)
		}
		ms := make([]ipv4.Message, 2)
		for i, b := range [][]byte{one, two} {
			ms[i] = ipv4.Message{Buffers: [][]byte{append(bytes.Clone(b), make([]byte, 1024)...)}, N: len(b)}
		}
		if kept := c.sift(ms); kept != 2 {
			t.Fatalf("%d datagrams are kept without an older process", kept)
		}
		for i, b := range [][]byte{one, two} {
			if !bytes.Equal(ms[i].Buffers[0][:ms[i].N], b) {
				t.Errorf("datagram %d was changed", i)
			}
		}
		if n := len(c.handshakes()); n > 3 {
			t.Errorf("%d handshakes of two datagrams", n)
		}
	})
}

// TestChosenIDThatLooksIssued checks a client whose own ID looks like one of another generation
// by chance: both halves of its ClientHello go to the process that has the first.
func TestChosenIDThatLooksIssued(t *testing.T) {
	s := share(t)
	id, err := IDs{9}.GenerateConnectionID()
	if err != nil {
		t.Fatal(err)
	}
	first, second := initial(string(id.Bytes()), "first half"), initial(string(id.Bytes()), "second half")
	old := read(s.old, 1)
	s.send(first)
	expect(t, "the old process", old, first)
	s.handOver()
	old = read(s.old, 1)
	read(s.new, 1)
	s.send(second)
	expect(t, "the old process", old, second)
}

// TestHandshakesThatBeginWhileTheSocketIsLeft checks that each client whose first datagram is
// read by the old process is in the list that the new one gets, also if that is read at the
// very moment at which the socket is left. Otherwise both would have, and acknowledge, one half
// of a ClientHello.
func TestHandshakesThatBeginWhileTheSocketIsLeft(t *testing.T) {
	for range 50 {
		s := share(t)
		firsts := make(chan string, 4096)
		go func() { // the old process
			ms := []ipv4.Message{{Buffers: [][]byte{make([]byte, 2048)}, OOB: make([]byte, 128)}}
			for {
				if _, err := s.old.ReadBatch(ms, 0); err != nil {
					close(firsts)
					return
				}
				id, _ := destination(ms[0].Buffers[0][:ms[0].N])
				firsts <- string(id)
			}
		}()
		left := make(chan struct{})
		go func() {
			defer close(left)
			if err := s.old.Leave(s.ours); err != nil {
				t.Error(err)
			}
		}()
		for i, on := 0, true; i < maxHandshakes/2 && on; i++ {
			s.send(initial(fmt.Sprintf("id-%04d", i), "first half"))
			select {
			case <-left:
				on = false
			default:
			}
		}
		<-left
		if err := s.new.Join(s.theirs); err != nil {
			t.Fatal(err)
		}
		known := s.new.older.Load().begun
		s.old.Close()
		n := 0
		for id := range firsts {
			if _, ok := known[id]; !ok {
				t.Fatalf("%s was read by the old process and is not among the %d that the new one knows", id, len(known))
			}
			n++
		}
		if n > maxHandshakes {
			t.Fatalf("%d datagrams", n)
		}
	}
}

// TestLatestHandshakesComeFirst checks the order of what a relay may have no space for.
func TestLatestHandshakesComeFirst(t *testing.T) {
	c := &Conn{own: 1}
	for i := range maxHandshakes + 10 {
		c.note(fmt.Appendf(nil, "id-%d", i))
		c.note([]byte("again"))
	}
	ids := c.handshakes()
	if want := fmt.Sprintf("id-%d", maxHandshakes+9); len(ids) != maxHandshakes/2+1 || string(ids[0]) != "again" || string(ids[1]) != want {
		t.Errorf("%d IDs, the first %q and %q, want %d, again and %s", len(ids), ids[0], ids[1], maxHandshakes/2+1, want)
	}
}
