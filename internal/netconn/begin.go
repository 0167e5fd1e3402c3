package netconn

import (
	"errors"
	"net"
	"time"
)

// errNotYet asks the poller to wait for more.
var errNotYet = errors.New("not enough has come")

// Readable waits until nc has something to read, or has ended, without reading
// it. It reports false after the timeout.
func Readable(nc net.Conn, within time.Duration) bool {
	return await(nc, within, func([]byte) error { return nil }, make([]byte, 1))
}

// BeginsWith waits until it is clear whether the first bytes on nc are those of
// prefix, and reports that. Nothing is read. It also reports false when the
// bytes do not come in time, or where it cannot be found out.
func BeginsWith(nc net.Conn, prefix string, within time.Duration) bool {
	begins := false
	await(nc, within, func(seen []byte) error {
		n := min(len(seen), len(prefix))
		switch {
		case string(seen[:n]) != prefix[:n]:
			return nil
		case n < len(prefix) && n > 0:
			return errNotYet
		}
		begins = n == len(prefix)
		return nil
	}, make([]byte, len(prefix)))
	return begins
}
