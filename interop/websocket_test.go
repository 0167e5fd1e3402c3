package interop

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/coder/websocket"
)

// closing is what a server hears when its WebSocket ends.
type closing struct {
	code   websocket.StatusCode
	reason string
}

// echoWebSocket serves a WebSocket that sends messages back, and ends it itself on
// the message "end".
func echoWebSocket(ended chan<- closing) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{"echo"}, CompressionMode: websocket.CompressionContextTakeover})
		if err != nil {
			return
		}
		c.SetReadLimit(-1)
		for {
			kind, message, err := c.Read(r.Context())
			var e websocket.CloseError
			switch {
			case errors.As(err, &e):
				ended <- closing{e.Code, e.Reason}
				return
			case err != nil:
				ended <- closing{-1, err.Error()}
				return
			case string(message) == "end":
				c.Close(4001, "as asked")
				return
			}
			if err := c.Write(r.Context(), kind, message); err != nil {
				return
			}
		}
	})
}

// TestWebSocket runs a client and a server of coder/websocket against each other.
func TestWebSocket(t *testing.T) {
	ended := make(chan closing, 1)
	server := httptest.NewServer(echoWebSocket(ended))
	t.Cleanup(server.Close)
	plain, secure := free(t), free(t)
	g := start(t, fmt.Sprintf(`
version: 1
admin: {address: ""}
ports:
  web: {address: %q, protocol: http}
  websecure: {address: %q, protocol: https}
proxies: {all: {routes: [{path: /ws, servers: [{url: %q}]}]}}
`, plain, secure, server.URL))
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	t.Cleanup(client.CloseIdleConnections)
	for _, url := range []string{"ws://" + plain + "/ws", "wss://" + secure + "/ws"} {
		ctx, stop := context.WithTimeout(context.Background(), patience)
		defer stop()
		open := func() *websocket.Conn {
			c, _, err := websocket.Dial(ctx, url, &websocket.DialOptions{HTTPClient: client, Subprotocols: []string{"echo"}, CompressionMode: websocket.CompressionContextTakeover})
			if err != nil {
				t.Fatalf("%s: %v\n%s", url, err, g.log)
			}
			c.SetReadLimit(-1)
			return c
		}
		c := open()
		if c.Subprotocol() != "echo" {
			t.Errorf("%s: got subprotocol %q", url, c.Subprotocol())
		}
		for _, size := range []int{0, 1, 125, 126, 65_535, 65_536, 1 << 20} {
			want := strings.Repeat("0123456789abcdef", size/16+1)[:size]
			if err := c.Write(ctx, websocket.MessageText, []byte(want)); err != nil {
				t.Fatal(err)
			}
			if _, got, err := c.Read(ctx); err != nil || string(got) != want {
				t.Fatalf("%s: %d bytes did not come back: %v", url, size, err)
			}
		}
		// The close frames of both sides reach the other.
		if err := c.Close(4000, "that is all"); err != nil {
			t.Errorf("%s: close: %v", url, err)
		}
		if got := <-ended; got != (closing{4000, "that is all"}) {
			t.Errorf("%s: the server heard %+v", url, got)
		}
		c = open()
		if err := c.Write(ctx, websocket.MessageText, []byte("end")); err != nil {
			t.Fatal(err)
		}
		var e websocket.CloseError
		if _, _, err := c.Read(ctx); !errors.As(err, &e) || e.Code != 4001 || e.Reason != "as asked" {
			t.Errorf("%s: the client heard %v", url, err)
		}
	}
}
