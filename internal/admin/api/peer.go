package api

import (
	"context"
	"net"
	"os"
)

// peerKey is the key of the user at the other end of the admin socket in a context.
type peerKey struct{}

// ConnContext is for http.Server: it notes who is at the other end of a connection by
// the admin socket. Only root and our own user are noted; anybody else has to sign in
// as everywhere.
func ConnContext(ctx context.Context, conn net.Conn) context.Context {
	unix, ok := conn.(*net.UnixConn)
	if !ok {
		return ctx
	}
	if uid, err := peerUID(unix); err == nil && (uid == 0 || uid == os.Geteuid()) {
		return context.WithValue(ctx, peerKey{}, uid)
	}
	return ctx
}

// peerOf returns the user of a request by the admin socket.
func peerOf(ctx context.Context) (uid int, ok bool) {
	uid, ok = ctx.Value(peerKey{}).(int)
	return uid, ok
}
