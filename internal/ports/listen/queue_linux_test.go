package listen

import (
	"bufio"
	"io"
	"net"
	"testing"
	"time"

	"headgate/internal/testhouse"
)

// A process that does not run for a while, since the machine is busy or stands still,
// does not take its clients for gone. Here its accept loop is kept from running.
func TestWhoWaitsInTheQueueIsServedThoughTheTimeForItIsOver(t *testing.T) {
	s := listenAt(t, anyPort)
	held, goOn := make(chan struct{}, 1), make(chan struct{})
	s.Serve(func(nc net.Conn, _ bool) Conn {
		select {
		case held <- struct{}{}:
			<-goOn
		default:
		}
		return &stubborn{echo{Conn: nc}}
	})
	var clients []net.Conn
	for range 4 {
		c := dial(t, s)
		if _, err := io.WriteString(c, "hello\n"); err != nil {
			t.Fatal(err)
		}
		clients = append(clients, c)
		testhouse.Eventually(t, "the first client is taken", func() bool { return len(held) == 1 })
	}
	drained := make(chan int)
	go func() { drained <- s.Drain(patience) }()
	testhouse.Eventually(t, "the socket drains", s.Draining)
	<-time.After(4 * queueTime)
	close(goOn)
	for _, c := range clients {
		if line, err := bufio.NewReader(c).ReadString('\n'); err != nil || line != "hello\n" {
			t.Errorf("a client that waited got %q, %v", line, err)
		}
		c.Close()
	}
	if cut := <-drained; cut != 0 {
		t.Errorf("%d connections were cut", cut)
	}
}
