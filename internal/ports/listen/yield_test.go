package listen

import (
	"bufio"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"headgate/internal/clock"
	"headgate/internal/testhouse"
)

// The client with the most idle connections loses the oldest of them, until another has
// as many and older ones.
func TestWhoHasMostIsTheFirstToGo(t *testing.T) {
	for _, test := range []struct{ idle, want string }{
		{"", ""},
		{"a1", "a1"},
		{"a1 b2", "a1"},
		{"b2 a1 a9", "a1"},
		{"a1 a2 a3 b0 b9 c1 c2 c3 c4 d5 d6 d7 d8 d9 a4 a5", "a1 d5"},
		{"a1 a2 a3 b0 b9 c1 c2 c3 c4 d5 d6 d7 d8 d9 a4 a5 e1 e2 e3 e4 e5 e6 e7 e8", "e1 e2 e3"},
		{"a7 a8 a9 b4 b5 b6 c1 c2 c3 d4 d5 d6 e1 f2 g3 h4 a3 a4 a5 a6 c4 c5 c6 d1", "a3 c1 a4"},
	} {
		var all []idler
		for word := range strings.FieldsSeq(test.idle) {
			address := netip.AddrFrom4([4]byte{192, 0, 2, word[0]})
			all = append(all, idler{nil, clientOf(address), int64(word[1] - '0')})
		}
		var got []string
		for _, i := range firstToGo(all) {
			got = append(got, fmt.Sprintf("%c%d", i.client.Addr().As4()[3], i.since))
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("of %s: got %v, want %s", test.idle, got, test.want)
		}
	}
	if a, b := clientOf(netip.MustParseAddr("2001:db8::1")), clientOf(netip.MustParseAddr("2001:db8::2")); a != b {
		t.Error("two addresses of one network are not one client")
	}
	if a, b := clientOf(netip.MustParseAddr("::ffff:192.0.2.1")), clientOf(netip.MustParseAddr("192.0.2.1")); a != b {
		t.Error("an IPv4-mapped IPv6 address is another client than its IPv4 address")
	}
}

// resting is an echo that is idle until its first line has come.
type resting struct {
	echo
	since atomic.Int64 // 0 when it is busy
}

func (r *resting) Idle() (netip.Addr, int64, bool) {
	since := r.since.Load()
	return r.RemoteAddr().(*net.TCPAddr).AddrPort().Addr(), since, since > 0
}

func (r *resting) Yield(since int64) bool {
	if !r.since.CompareAndSwap(since, 0) {
		return false
	}
	r.Close()
	return true
}

func (r *resting) Serve() func(func()) bool {
	b := bufio.NewReader(r.Conn)
	if _, err := b.Peek(1); err != nil || r.since.Swap(0) == 0 {
		r.Close()
		return nil
	}
	line, _ := b.ReadString('\n')
	fmt.Fprint(r.Conn, line)
	return r.echo.Serve()
}

// Whoever comes to a full socket takes the place of one that is idle, also on another
// socket that has more than its reserve, and never of one that is busy.
func TestIdleConnectionsMakeRoom(t *testing.T) {
	limit := &Limit{}
	a, b := limit.NewShare(nil), limit.NewShare(nil)
	limit.Divide(8, map[*Share]int{a: 0, b: 0}) // 2 reserved each, 4 for all
	listen := func(share *Share) *Socket {
		s, err := Open(anyPort, nil, share, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		s.Serve(func(nc net.Conn, _ bool) Conn {
			r := &resting{echo: echo{Conn: nc}}
			r.since.Store(clock.Now())
			return r
		})
		return s
	}
	crowded, other := listen(a), listen(b)
	var busy []net.Conn
	for range 4 {
		c := dial(t, crowded)
		if err := echoLine(c); err != nil {
			t.Fatal(err)
		}
		busy = append(busy, c)
	}
	for range 20 {
		dial(t, crowded)
	}
	testhouse.Eventually(t, "the socket is full", a.Full)
	for range 4 { // the reserve, and two that were taken
		c := dial(t, other)
		if err := echoLine(c); err != nil {
			t.Fatal(err)
		}
		busy = append(busy, c)
	}
	for i, c := range busy {
		if err := echoLine(c); err != nil {
			t.Errorf("connection %d was closed while it was busy: %v", i, err)
		}
	}
	// Nobody is idle now: the next one waits until somebody leaves.
	late := dial(t, other)
	busy[0].Close()
	if err := echoLine(late); err != nil {
		t.Error(err)
	}
}

func TestAFullShareStaysFullAtItsBound(t *testing.T) {
	l := &Limit{}
	s := l.NewShare(nil)
	l.Divide(0, map[*Share]int{s: 48})
	for range 48 {
		s.add()
	}
	s.room()
	for range 3 {
		if s.remove(); !s.Full() {
			t.Fatal("a place or three are free, and it says that it is not full")
		}
	}
	if s.remove(); s.Full() {
		t.Error("it is full with four places")
	}
}

// A flood at the limit does not have all connections looked at for each of its packets.
func TestACrowdIsLookedAtNowAndThen(t *testing.T) {
	l := &Limit{}
	share := l.NewShare(nil)
	c := crowd{next: clock.Now() + int64(time.Hour)}
	if c.makeRoom(share); c.looked != 0 {
		t.Error("it looked")
	}
	if c.next = 0; c.makeRoom(share) || c.looked == 0 || c.next <= c.looked {
		t.Errorf("it looked at %d, and looks again at %d", c.looked, c.next)
	}
}

// Nothing of a connection that has gone is kept for longer than its order is believed.
func TestACrowdForgets(t *testing.T) {
	c := crowd{list: []idler{{}}, looked: clock.Now() - staleTime - int64(time.Second)}
	if c.forget(); c.list != nil {
		t.Error("it remembers")
	}
}
