package upstream

import (
	"context"
	"errors"
	"net"
	"os"
	"syscall"
	"testing"
)

func TestAFailedConnectionIsToldOnce(t *testing.T) {
	refused := os.NewSyscallError("connect", syscall.ECONNREFUSED)
	at := &net.TCPAddr{IP: net.IPv4(10, 0, 0, 7), Port: 3000}
	for _, test := range []struct {
		address string
		err     error
		want    string
	}{
		{"10.0.0.7:3000", &net.OpError{Op: "dial", Net: "tcp", Addr: at, Err: refused}, "connect to 10.0.0.7:3000: connection refused"},
		{"app:3000", &net.OpError{Op: "dial", Net: "tcp", Addr: at, Err: refused}, "connect to app:3000 (10.0.0.7:3000): connection refused"},
		{"unix:/run/app.sock", &net.OpError{Op: "dial", Net: "unix", Addr: &net.UnixAddr{Name: "/run/app.sock", Net: "unix"}, Err: os.NewSyscallError("connect", syscall.ENOENT)},
			"connect to unix:/run/app.sock: no such file or directory"},
		{"app:3000", &net.DNSError{Err: "no such host", Name: "app"}, "connect to app:3000: lookup app: no such host"},
		{"app:3000", context.DeadlineExceeded, "connect to app:3000: context deadline exceeded"},
	} {
		err := &dialError{test.address, test.err}
		if err.Error() != test.want {
			t.Errorf("%v: got %q, want %q", test.err, err, test.want)
		}
		if !errors.Is(err, test.err) || !errors.Is(err, errDial) {
			t.Errorf("%v: is neither what it wraps nor from before the connection", test.err)
		}
	}
}
