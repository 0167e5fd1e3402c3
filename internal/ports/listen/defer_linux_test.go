package listen

import (
	"testing"

	"golang.org/x/sys/unix"

	"headgate/internal/testhouse"
)

// defers returns for how long the system keeps silent clients from a socket, in
// seconds.
func defers(t *testing.T, s *Socket) (seconds int) {
	t.Helper()
	raw, err := s.file.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) {
			seconds, err = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_DEFER_ACCEPT)
		})
	}
	if err != nil {
		t.Skip(err)
	}
	return seconds
}

func TestASilentClientIsTakenInTheEnd(t *testing.T) {
	s := listenAt(t, anyPort)
	if got := defers(t, s); got != 0 {
		t.Errorf("silent clients are kept back for %d s, want that somebody asks for it", got)
	}
	s.DeferAccept(true)
	if got := defers(t, s); got != 1 {
		t.Errorf("silent clients are kept back for %d s, want 1", got)
	}
	s.Serve(serveEcho)
	silent := dial(t, s)
	for range 3 {
		if err := echoLine(dial(t, s)); err != nil {
			t.Fatalf("a client that speaks: %v", err)
		}
	}
	// One that has only closed its side is taken too: so do the checks of balancers.
	dial(t, s).Close()
	testhouse.Eventually(t, "all are taken", func() bool { return s.Accepted() == 5 })
	if err := echoLine(silent); err != nil {
		t.Errorf("the client that was silent: %v", err)
	}
	s.DeferAccept(false)
	if got := defers(t, s); got != 0 {
		t.Errorf("silent clients are kept back for %d s after all", got)
	}
}

// A client that is connected as far as it knows is not reset since the system has not
// let it in yet.
func TestDrainTakesSilentClientsToo(t *testing.T) {
	s := listenAt(t, anyPort)
	s.DeferAccept(true)
	s.Serve(serveEcho)
	const clients = 3
	for range clients {
		dial(t, s)
	}
	s.Drain(patience)
	if got := s.Accepted(); got != clients {
		t.Errorf("%d of %d clients were taken", got, clients)
	}
}
