package main

import (
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
	raw, err := w.SyscallConn()
	if err == nil {
		cerr := raw.Control(func(fd uintptr) { _, _, err = c.WriteMsgUnix([]byte("BARRIER=1"), unix.UnixRights(int(fd)), nil) })
		if err == nil {
			err = cerr
		}
	}
	w.Close()
	if err != nil {
		return err
	}
	r.SetReadDeadline(time.Now().Add(barrierTime))
	if _, err := r.Read(make([]byte, 1)); os.IsTimeout(err) {
		return fmt.Errorf("no answer within %v", barrierTime)
	}
	return nil
}
