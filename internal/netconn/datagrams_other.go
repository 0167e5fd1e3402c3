//go:build !linux || race || !(amd64 || arm64)

package netconn

import (
	"net"
	"time"

	"golang.org/x/net/ipv4"
)

// datagramCalls leaves it to package net to read and to send.
type datagramCalls struct {
	conn *net.UDPConn
	in   *ipv4.PacketConn
}

func (d *datagramCalls) init(c *net.UDPConn) error {
	d.conn, d.in = c, ipv4.NewPacketConn(c)
	return nil
}

// read is ReadBatch that returns every error.
func (d *datagramCalls) read(ms []ipv4.Message, flags int) (int, error) {
	return d.in.ReadBatch(ms, flags)
}

// write sends b. If the socket is full it waits up to sendPatience.
func (d *datagramCalls) write(b, oob []byte, to *net.UDPAddr) error {
	d.conn.SetWriteDeadline(time.Now().Add(sendPatience))
	_, _, err := d.conn.WriteMsgUDP(b, oob, to)
	return err
}
