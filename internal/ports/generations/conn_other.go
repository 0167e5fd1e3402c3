//go:build !linux

package generations

import (
	"errors"
	"os"

	"headgate/internal/netconn"
)

// Conn is the socket of one process: on this system, no two share one.
type Conn struct{ *netconn.Datagrams }

// New returns the socket.
func New(d *netconn.Datagrams, _ byte) *Conn { return &Conn{d} }

// Relay returns an error.
func Relay() (ours, theirs *os.File, err error) { return nil, nil, errors.ErrUnsupported }

// Join returns an error.
func (c *Conn) Join(*os.File) error { return errors.ErrUnsupported }

// Leave returns an error.
func (c *Conn) Leave(*os.File) error { return errors.ErrUnsupported }

// Rejoin does nothing.
func (c *Conn) Rejoin() {}
