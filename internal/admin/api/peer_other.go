//go:build !linux && !darwin && !freebsd

package api

import (
	"errors"
	"net"
)

// KnowsPeers reports whether the system identifies the peer of a socket.
const KnowsPeers = false

// peerOfSocket is not supported on this system: clients of the socket have to sign in.
func peerOfSocket(*net.UnixConn) (uid, pid int, err error) { return 0, 0, errors.ErrUnsupported }
