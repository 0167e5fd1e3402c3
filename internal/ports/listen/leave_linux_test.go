package listen

import (
	"bufio"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"
)

// The options of a listening socket that could differ, by level. TCP_INFO and the like
// tell of the state and change by themselves.
var socketOptions = map[int][]int{
	unix.SOL_SOCKET: {
		unix.SO_REUSEADDR, unix.SO_REUSEPORT, unix.SO_KEEPALIVE, unix.SO_BINDTOIFINDEX, unix.SO_SNDBUF, unix.SO_RCVBUF, unix.SO_LINGER, unix.SO_MARK, unix.SO_PRIORITY,
		unix.SO_ACCEPTCONN, unix.SO_INCOMING_CPU, unix.SO_BUSY_POLL, unix.SO_RCVLOWAT, unix.SO_RCVTIMEO, unix.SO_SNDTIMEO, unix.SO_ERROR,
	},
	unix.IPPROTO_TCP: {
		unix.TCP_NODELAY, unix.TCP_DEFER_ACCEPT, unix.TCP_KEEPIDLE, unix.TCP_KEEPINTVL, unix.TCP_KEEPCNT, unix.TCP_USER_TIMEOUT, unix.TCP_FASTOPEN, unix.TCP_SYNCNT,
		unix.TCP_QUICKACK, unix.TCP_MAXSEG, unix.TCP_LINGER2, unix.TCP_WINDOW_CLAMP, unix.TCP_NOTSENT_LOWAT,
	},
	unix.IPPROTO_IP: {unix.IP_TOS, unix.IP_TTL, unix.IP_TRANSPARENT, unix.IP_FREEBIND},
}

// optionsOf returns the options of a socket, whether a filter is attached, and its flags.
func optionsOf(t *testing.T, s *Socket) map[string]int {
	t.Helper()
	f, err := s.File()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	raw, err := f.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]int{}
	raw.Control(func(fd uintptr) {
		for level, options := range socketOptions {
			for _, o := range options {
				v, err := unix.GetsockoptInt(int(fd), level, o)
				if err != nil {
					v = -int(err.(unix.Errno))
				}
				all[fmt.Sprintf("%d/%d", level, o)] = v
			}
		}
		flags, _ := unix.FcntlInt(fd, unix.F_GETFL, 0)
		all["flags"] = flags
		// SO_GET_FILTER tells how long a filter is that is attached.
		n, _ := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_ATTACH_FILTER)
		all["filter"] = n
	})
	return all
}

// TestLeaveChangesNothingAboutTheSocket holds a socket that two processes have to every
// option, as those are shared: a change by the one that leaves is one for the other.
func TestLeaveChangesNothingAboutTheSocket(t *testing.T) {
	for _, deferred := range []bool{true, false} {
		old, err := Open(netip.MustParseAddrPort("127.0.0.1:0"), nil, nil, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		old.DeferAccept(deferred)
		old.Serve(answering("old"))
		before := optionsOf(t, old)
		if (before["6/9"] > 0) != deferred {
			t.Fatalf("deferred %v: TCP_DEFER_ACCEPT is %d", deferred, before["6/9"])
		}
		f, err := old.File()
		if err != nil {
			t.Fatal(err)
		}
		next, err := Inherit(old.Bound(), f, nil, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		next.DeferAccept(deferred)
		compare := func(when string) {
			t.Helper()
			for name, v := range optionsOf(t, next) {
				if v != before[name] {
					t.Errorf("deferred %v, %s: option %s is %d, was %d", deferred, when, name, v, before[name])
				}
			}
		}
		compare("inherited")
		old.Leave()
		compare("left")
		if got := askFor(t, old.Bound(), func() { next.Serve(answering("new")) }); got != "new" {
			t.Errorf("a client that came in between got %q", got)
		}
		old.Rejoin(answering("old"))
		old.Leave()
		old.Drain(0)
		compare("closed")
		if got := askFor(t, next.Bound(), func() {}); got != "new" {
			t.Errorf("after the old one has gone: got %q", got)
		}
		next.Close()
	}
}

// TestRejoin has a socket accept again after the other process has ended.
func TestRejoin(t *testing.T) {
	s, err := Open(netip.MustParseAddrPort("127.0.0.1:0"), nil, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	s.Serve(answering("old"))
	s.Leave()
	if got := askFor(t, s.Bound(), func() { s.Rejoin(answering("old again")) }); got != "old again" {
		t.Errorf("got %q", got)
	}
}

// answering returns what answers every client with a word.
func answering(word string) Accept {
	return func(nc net.Conn, _ bool) Conn { return &answer{Conn: nc, word: word} }
}

type answer struct {
	net.Conn
	word string
}

func (a *answer) Serve() func(func()) bool {
	defer a.Conn.Close()
	if _, err := http.ReadRequest(bufio.NewReader(a.Conn)); err == nil {
		fmt.Fprintf(a.Conn, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", len(a.word), a.word)
	}
	return nil
}

func (a *answer) Drain() {}

// askFor sends a request, calls then, and returns the body of the answer.
func askFor(t *testing.T, at netip.AddrPort, then func()) string {
	t.Helper()
	c, err := net.Dial("tcp", at.String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	then()
	rs, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return err.Error()
	}
	b := make([]byte, 100)
	n, _ := rs.Body.Read(b)
	return string(b[:n])
}
