package netconn

import (
	"slices"

	"golang.org/x/sys/unix"
)

// segmented reports whether control messages make the system split what is sent into
// several datagrams.
func segmented(oob []byte) bool {
	all, err := unix.ParseSocketControlMessage(oob)
	return err == nil && slices.ContainsFunc(all, func(m unix.SocketControlMessage) bool {
		return m.Header.Level == unix.IPPROTO_UDP && m.Header.Type == unix.UDP_SEGMENT
	})
}
