package netconn_test

import (
	"errors"
	"io"
	"runtime"
	"testing"
	"time"

	"headgate/internal/netconn"
)

// awaitParked waits until n connections are parked.
func awaitParked(t *testing.T, n int) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); ; runtime.Gosched() {
		got, watched := netconn.Parked()
		if got == n && watched == (n > 0) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d connections are parked, watched %v; want %d", got, watched, n)
		}
	}
}

func TestRelayParksAndGoesOn(t *testing.T) {
	_, client, server, end := relay(t, time.Minute)
	awaitParked(t, 2)
	p := make([]byte, 2)
	for range 2 {
		client.Write([]byte("hi"))
		if _, err := io.ReadFull(server, p); err != nil || string(p) != "hi" {
			t.Fatalf("the server got %q, %v", p, err)
		}
		server.Write([]byte("ho"))
		if _, err := io.ReadFull(client, p); err != nil || string(p) != "ho" {
			t.Fatalf("the client got %q, %v", p, err)
		}
		awaitParked(t, 2)
	}
	client.CloseWrite()
	if n, err := server.Read(p); n != 0 || err != io.EOF {
		t.Fatalf("the server got %d bytes, %v, want the end", n, err)
	}
	awaitParked(t, 1)
	server.Close()
	if err := <-end; err != nil {
		t.Error(err)
	}
	awaitParked(t, 0)
}

func TestRelayEndsWhileItIsParked(t *testing.T) {
	t.Run("cut", func(t *testing.T) {
		r, _, _, end := relay(t, time.Minute)
		awaitParked(t, 2)
		r.Cut()
		if err := <-end; !errors.Is(err, netconn.ErrCut) {
			t.Error(err)
		}
		awaitParked(t, 0)
	})
	t.Run("idle", func(t *testing.T) {
		const idle = time.Second
		begin := time.Now()
		_, _, _, end := relay(t, idle)
		awaitParked(t, 2)
		if err := <-end; !errors.Is(err, netconn.ErrTimeout) {
			t.Error(err)
		}
		if took := time.Since(begin); took < idle {
			t.Errorf("it ended after %v, want %v", took, idle)
		}
		awaitParked(t, 0)
	})
	t.Run("reset", func(t *testing.T) {
		_, client, server, end := relay(t, time.Minute)
		awaitParked(t, 2)
		client.SetLinger(0)
		client.Close()
		var wrong *netconn.ClientError
		if err := <-end; !errors.As(err, &wrong) {
			t.Error(err)
		}
		if _, err := server.Read(make([]byte, 1)); err == nil || err == io.EOF {
			t.Errorf("the server heard of %v, want a reset", err)
		}
		awaitParked(t, 0)
	})
}

func TestParkedConnectionHearsOfAllThatEndsItsWait(t *testing.T) {
	near, far := pair(t)
	soon := time.Now().UnixNano() // far in the future of this process's clock
	for name, stir := range map[string]func(){
		"bytes": func() { far.Write([]byte("x")) },
		"kick":  near.Kick,
		"asked": near.Unpark,
	} {
		resumed := make(chan struct{})
		if !near.Park(soon, func() { close(resumed) }) {
			t.Fatalf("%s: it was not parked", name)
		}
		stir()
		<-resumed
		switch name {
		case "bytes":
			if _, err := near.Read(make([]byte, 1)); err != nil {
				t.Error(err)
			}
		case "kick":
			if near.Park(soon, func() { t.Error("resumed") }) {
				t.Error("a connection was parked that has to look up")
			}
			if _, err := near.Read(make([]byte, 1)); !errors.Is(err, netconn.ErrKicked) {
				t.Error(err)
			}
		}
	}
	awaitParked(t, 0)
	near.Close()
	if near.Park(soon, func() { t.Error("resumed") }) {
		t.Error("a closed connection was parked")
	}
}
