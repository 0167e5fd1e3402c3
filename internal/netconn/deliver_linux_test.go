package netconn_test

import (
	"io"
	"net"
	"testing"
	"time"

	"headgate/internal/testhouse"
)

// What a side has sent before it resets its connection reaches the other side first, also
// while that one still sends, so that a write finds the reset before a read does.
func TestRelayDeliversBeforeAReset(t *testing.T) {
	for _, size := range []int{5, 20_000, 200_000, 3 << 20} {
		for round := range 30 {
			_, client, server, end := relay(t, time.Minute)
			from, to := server, client
			if round%3 == 2 {
				from, to = client, server
			}
			got := sendAndReset(t, from, to, size, round%2 == 0)
			if got != size {
				t.Fatalf("round %d: got %d of %d bytes", round, got, size)
			}
			if err := <-end; err == nil {
				t.Fatalf("round %d: the relay ended without an error", round)
			}
		}
	}
}

// sendAndReset sends so many bytes on from and resets it when the other end of that
// connection has received all of them. It returns how many to, which sends all the while,
// has read before its reset; if slow, it waits for the reset before it reads.
func sendAndReset(t *testing.T, from, to *net.TCPConn, size int, slow bool) (got int) {
	t.Helper()
	refused := make(chan error, 1)
	go func() {
		for {
			if _, err := to.Write(make([]byte, 100)); err != nil {
				refused <- err
				return
			}
		}
	}()
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		from.Write(make([]byte, size))
		testhouse.Eventually(t, "all was received", func() bool { all, _ := testhouse.Received(from); return all })
		from.SetLinger(0)
		from.Close()
	}()
	if slow && size <= 20_000 { // it fits into the buffers
		<-refused
	}
	n, _ := io.Copy(io.Discard, to) // the write may have taken the error of the reset
	<-sent
	to.Close()
	return int(n)
}
