//go:build !race

package netconn_test

import (
	"io"
	"testing"

	"headgate/internal/netconn"
	"headgate/internal/testhouse"
)

// Serve allocates nothing for an exchange under TLS that crypto/tls does not.
func TestServeUnderTLSAllocatesNothing(t *testing.T) {
	allocations := func(echo func(c *netconn.Conn) error) float64 {
		near, far := testhouse.Pair(t)
		c, client := overTLS(t, near, far)
		ended := make(chan error, 1)
		go func() { ended <- echo(c) }()
		p := make([]byte, 100)
		n := testing.AllocsPerRun(500, func() {
			client.Write(p)
			if _, err := io.ReadFull(client, p); err != nil {
				t.Fatal(err)
			}
		})
		client.CloseWrite()
		if err := <-ended; err != io.EOF {
			t.Error(err)
		}
		return n
	}
	alone := allocations(func(c *netconn.Conn) error {
		p := make([]byte, 200)
		for {
			n, err := c.NetConn().Read(p)
			if n == 0 {
				return err
			}
			if _, err := c.NetConn().Write(p[:n]); err != nil {
				return err
			}
		}
	})
	served := allocations(func(c *netconn.Conn) error {
		var b netconn.Buffer
		return c.Serve(&b, func() bool {
			c.Write(b.Bytes())
			b.Use(b.Len())
			return true
		})
	})
	// The look for another record that finds nothing costs crypto/tls one more.
	if served > alone+1 {
		t.Errorf("%v allocations for an exchange, of which crypto/tls makes %v", served, alone)
	}
}
