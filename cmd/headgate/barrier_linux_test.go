package main

import (
	"net"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestBarrierWaitsForTheServiceManager holds that the barrier ends when the service
// manager closes the descriptor that came with the message, and not before.
func TestBarrierWaitsForTheServiceManager(t *testing.T) {
	address := &net.UnixAddr{Name: filepath.Join(t.TempDir(), "n"), Net: "unixgram"}
	manager, err := net.ListenUnixgram("unixgram", address)
	if err != nil {
		t.Fatal(err)
	}
	defer manager.Close()
	t.Setenv("NOTIFY_SOCKET", address.Name)
	passed := make(chan error, 1)
	go func() { passed <- barrier() }()

	b, oob := make([]byte, 100), make([]byte, unix.CmsgSpace(4))
	manager.SetReadDeadline(time.Now().Add(time.Minute))
	n, oobn, _, _, err := manager.ReadMsgUnix(b, oob)
	if err != nil || string(b[:n]) != "BARRIER=1" {
		t.Fatalf("got %q, %v", b[:max(n, 0)], err)
	}
	messages, err := unix.ParseSocketControlMessage(oob[:oobn])
	if err != nil || len(messages) != 1 {
		t.Fatalf("got %d control messages, %v", len(messages), err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		t.Fatalf("got the descriptors %v, %v", fds, err)
	}
	select {
	case err := <-passed:
		t.Fatalf("the barrier ended before the descriptor was closed: %v", err)
	default:
	}
	unix.Close(fds[0])
	if err := <-passed; err != nil {
		t.Error(err)
	}
}

func TestBarrierWithoutAServiceManager(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "")
	if err := barrier(); err != nil {
		t.Error(err)
	}
}
