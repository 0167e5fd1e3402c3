package api

import (
	"context"
	"errors"
	"net"
	"os"
)

// peerKey is the key of the user at the other end of the admin socket in a context.
type peerKey struct{}

// OthersContext is for http.Server: it stores in the context which user is at the other end
// of a connection to the admin socket. Only root and the user of this process are stored;
// others have to sign in. It ignores connections of the process itself, so that a client whose
// requests this process sends to the socket gets no rights.
func OthersContext(ctx context.Context, conn net.Conn) context.Context {
	uid, pid, ok := trusted(conn)
	if !ok || pid == os.Getpid() {
		return ctx
	}
	return WithLocal(ctx, uid)
}

// trusted returns the user and process at the other end of a socket, and whether that user
// is root or the user of this process. The process is 0 on systems that do not report it.
func trusted(conn net.Conn) (uid, pid int, ok bool) {
	unix, ok := conn.(*net.UnixConn)
	if !ok {
		return 0, 0, false
	}
	uid, pid, err := peerOfSocket(unix)
	return uid, pid, err == nil && (uid == 0 || uid == os.Geteuid())
}

// UserOf returns the user of the process at the other end of a socket: of a connection to
// a socket, that of who listens there.
func UserOf(conn net.Conn) (uid int, err error) {
	unix, ok := conn.(*net.UnixConn)
	if !ok {
		return 0, errors.ErrUnsupported
	}
	uid, _, err = peerOfSocket(unix)
	return uid, err
}

// WithLocal returns a context of requests by a user of this machine who has the rights
// of the admin socket. It is for the command line when it serves itself, since no process
// runs.
func WithLocal(ctx context.Context, uid int) context.Context {
	return context.WithValue(ctx, peerKey{}, uid)
}

// IsLocal reports whether a request came by the admin socket from root or our own user.
func IsLocal(ctx context.Context) bool {
	_, ok := peerOf(ctx)
	return ok
}

// peerOf returns the user of a request by the admin socket.
func peerOf(ctx context.Context) (uid int, ok bool) {
	uid, ok = ctx.Value(peerKey{}).(int)
	return uid, ok
}
