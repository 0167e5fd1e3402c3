package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// barrierTime is how long systemd may take to read what it was sent.
const barrierTime = 5 * time.Second

// barrier waits until systemd has read all messages before it (sd_notify_barrier(3)): it
// closes the end of a pipe that goes with the message. Without systemd it does nothing.
func barrier() error {
	path := os.Getenv("NOTIFY_SOCKET")
	if path == "" {
		return nil
	}
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	c, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		w.Close()
		return err
	}
	defer c.Close()
	err = sendWithFile(c, []byte("BARRIER=1"), w)
	w.Close()
	if err != nil {
		return err
	}
	r.SetReadDeadline(time.Now().Add(barrierTime))
	if _, err := r.Read(make([]byte, 1)); os.IsTimeout(err) {
		return fmt.Errorf("no response within %v", barrierTime)
	}
	return nil
}

// sendWithFile sends a datagram with a descriptor on a connected socket, where
// net.UnixConn.WriteMsgUnix refuses to.
func sendWithFile(c *net.UnixConn, b []byte, f *os.File) error {
	from, err := f.SyscallConn()
	if err != nil {
		return err
	}
	to, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var waited, sent error
	opened := from.Control(func(fd uintptr) {
		waited = to.Write(func(socket uintptr) bool {
			sent = unix.Sendmsg(int(socket), b, unix.UnixRights(int(fd)), nil, 0)
			return sent != unix.EAGAIN
		})
	})
	return errors.Join(opened, waited, os.NewSyscallError("sendmsg", sent))
}
