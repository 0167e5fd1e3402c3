package testhouse

import (
	"context"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"
)

func TestPairIsConnected(t *testing.T) {
	near, far := Pair(t)
	if _, err := io.WriteString(far, "x"); err != nil {
		t.Fatal(err)
	}
	far.CloseWrite()
	if b, err := io.ReadAll(near); string(b) != "x" || err != nil {
		t.Errorf("got %q, %v", b, err)
	}
}

func TestPatienceEnds(t *testing.T) {
	ctx, cancel := patient(t.Context(), time.Millisecond)
	defer cancel()
	<-ctx.Done()
	if err := context.Cause(ctx); err != context.DeadlineExceeded {
		t.Errorf("got %v", err)
	}
	ctx, cancel = Patient(t.Context())
	if err := ctx.Err(); err != nil {
		t.Errorf("at once: %v", err)
	}
	cancel()
	if err := ctx.Err(); err != context.Canceled {
		t.Errorf("cancelled: got %v", err)
	}
}

func TestLogIsReadWhileItIsWritten(t *testing.T) {
	var l Log
	go io.WriteString(&l, "a line")
	Eventually(t, "the line is there", func() bool { return l.String() == "a line" })
}

func TestPortsAreGivenOnce(t *testing.T) {
	seen := map[string]bool{}
	for _, port := range append(Ports(t, 100), Ports(t, 100)...) {
		if seen[port] {
			t.Errorf("port %s was given twice", port)
		}
		seen[port] = true
	}
}

func TestServersEndWithTheirTest(t *testing.T) {
	var ended atomic.Int32
	t.Run("serves", func(t *testing.T) {
		address := Server(t, func(c net.Conn) {
			defer ended.Add(1)
			io.Copy(c, c)
		})
		for range 3 {
			c, err := net.Dial("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			io.WriteString(c, "x")
			if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
				t.Error(err)
			}
		}
	})
	if n := ended.Load(); n != 3 {
		t.Errorf("%d of 3 connections have ended with the test", n)
	}
}
