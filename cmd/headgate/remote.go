package main

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"time"

	"headgate/client"
	"headgate/internal/admin/api"
)

// headTimeout is the time limit for the headers of a response, and for a TLS handshake.
const headTimeout = 30 * time.Second

// remote is the headgate that a command uses through its API.
type remote struct {
	*client.Client
	options   client.Options
	transport *http.Transport
	id        string // of the instance
	close     func()
}

// newRemote returns the headgate at a URL. place is what messages call it.
func newRemote(base, place string, dial func(ctx context.Context, network, address string) (net.Conn, error)) (*remote, error) {
	// No proxy of the environment is used.
	transport := &http.Transport{DialContext: dial, ResponseHeaderTimeout: headTimeout, TLSHandshakeTimeout: headTimeout}
	to := &remote{transport: transport, close: transport.CloseIdleConnections}
	return to, to.set(client.Options{URL: base, Name: place, Transport: transport, SignInHelp: signInHelp(api.KnowsPeers)})
}

// set replaces the options of the client.
func (to *remote) set(o client.Options) error {
	c, err := client.New(o)
	if err == nil {
		to.Client, to.options = c, o
	}
	return err
}

// signInHelp describes how a command authenticates. Not every system has an admin socket.
func signInHelp(socket bool) string {
	if socket {
		return "set a token in $" + tokenVariable + ", or use the admin socket"
	}
	return "set a token in $" + tokenVariable + ", created by `headgate token create` while headgate is stopped; this system has no admin socket"
}

// queryJSON returns the response of an operation as it is, to print it as JSON, and as a T.
func queryJSON[T any](ctx context.Context, to *remote, method, path string, in any, options ...client.Option) (raw json.RawMessage, out *T, err error) {
	if err := to.Do(ctx, method, path, in, &raw, options...); err != nil {
		return nil, nil, err
	}
	out = new(T)
	return raw, out, json.Unmarshal(raw, out)
}
