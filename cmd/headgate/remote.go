package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"headgate/internal/admin/api"
	"headgate/internal/schema"
)

// The limits of a request to headgate.
const (
	askTimeout  = time.Minute
	headTimeout = 30 * time.Second
	maxAnswer   = 256 << 20
)

// remote is a client of the API of a headgate.
type remote struct {
	base, place string // where it is, for us and for people
	id          string // of the instance
	token       string
	client      *http.Client
	close       func()
}

func newRemote(base, place string, dial func(ctx context.Context, network, address string) (net.Conn, error)) *remote {
	// No proxy of the environment is used, and no redirect is followed.
	transport := &http.Transport{DialContext: dial, ResponseHeaderTimeout: headTimeout, TLSHandshakeTimeout: headTimeout}
	return &remote{
		base: base, place: place, close: transport.CloseIdleConnections,
		client: &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
	}
}

// send sends a request. The fields may be nil.
func (to *remote) send(ctx context.Context, method, path string, body io.Reader, fields map[string]string) (*http.Response, error) {
	rq, err := http.NewRequestWithContext(ctx, method, to.base+path, body)
	if err != nil {
		return nil, err
	}
	for name, value := range fields {
		rq.Header.Set(name, value)
	}
	if to.token != "" {
		rq.Header.Set("Authorization", "Bearer "+to.token)
	}
	rs, err := to.client.Do(rq)
	if err != nil {
		return nil, fmt.Errorf("query %s: %w", to.place, errorOf(err))
	}
	return rs, nil
}

// errorOf removes from an error of http.Client what the message already says.
func errorOf(err error) error {
	type wrapped interface{ Unwrap() error }
	if w, ok := err.(wrapped); ok && w.Unwrap() != nil {
		return w.Unwrap()
	}
	return err
}

// refusal is what the API answers when it refuses.
type refusal struct {
	Code      string          `json:"code"`
	Pointer   string          `json:"pointer"`
	Parameter string          `json:"parameter"`
	Detail    string          `json:"detail"`
	Remedy    string          `json:"remedy"`
	More      json.RawMessage `json:"problems"`

	status int
}

// Error describes what is wrong, where, and how to fix it.
func (r *refusal) Error() string {
	text := r.Detail
	if at := cmp.Or(fieldAt(r.Pointer), r.Parameter); at != "" {
		text = at + ": " + text
	}
	switch {
	case r.status == http.StatusUnauthorized:
		return text + "; " + signInHelp(api.KnowsPeers)
	case r.Remedy != "":
		return text + "; " + r.Remedy
	}
	return text
}

// fieldAt returns a JSON pointer as people write the path of a field:
// proxies.shop.routes[0].path.
func fieldAt(pointer string) string {
	path := ""
	for i, step := range strings.Split(pointer, "/") {
		step = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
		_, err := strconv.ParseUint(step, 10, 32)
		switch {
		case i == 0: // the text before the first slash
		case err == nil && path != "":
			path += "[" + step + "]"
		default:
			path = schema.JoinPath(path, step)
		}
	}
	return path
}

// signInHelp describes how a command authenticates. Not every system has an admin socket.
func signInHelp(socket bool) string {
	if socket {
		return "set a token in $" + tokenVariable + ", or use the admin socket"
	}
	return "set a token in $" + tokenVariable + ", created by `headgate token create` while headgate is stopped; this system has no admin socket"
}

// call sends a request to the API: a method, a path below its prefix, and values that are written and
// read as JSON, nil for none. A change is made of whatever is there. The error is a
// *refusal when the API refuses.
func (to *remote) call(ctx context.Context, method, path string, in, out any) error {
	return to.change(ctx, method, path, "*", in, out)
}

// change is a request for a change of what has an entity tag.
func (to *remote) change(ctx context.Context, method, path, tag string, in, out any) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	rs, err := to.beginMatch(ctx, method, path, tag, in)
	if err != nil {
		return err
	}
	defer rs.Body.Close()
	if out == nil || rs.StatusCode == http.StatusNoContent {
		return nil
	}
	data, err := io.ReadAll(http.MaxBytesReader(nil, rs.Body, maxAnswer))
	if err == nil {
		if raw, ok := out.(*json.RawMessage); ok {
			*raw = data
			return nil
		}
		err = json.Unmarshal(data, out)
	}
	if err != nil {
		return fmt.Errorf("read the response of %s: %w", to.place, err)
	}
	return nil
}

// open sends a request whose response the caller reads; the caller closes the body.
func (to *remote) open(ctx context.Context, method, path string, in any) (*http.Response, error) {
	return to.beginMatch(ctx, method, path, "*", in)
}

func (to *remote) beginMatch(ctx context.Context, method, path, tag string, in any) (*http.Response, error) {
	fields := map[string]string{}
	var body io.Reader
	if in != nil {
		data, err := json.Marshal(in)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(data)
		fields["Content-Type"] = "application/json"
	}
	if method != http.MethodGet {
		fields["If-Match"] = tag
	}
	rs, err := to.send(ctx, method, api.Prefix+path, body, fields)
	if err != nil {
		return nil, err
	}
	if rs.StatusCode/100 == 2 {
		return rs, nil
	}
	defer rs.Body.Close()
	return nil, refusalOf(rs)
}

// refusalOf reads why a request was refused.
func refusalOf(rs *http.Response) error {
	data, _ := io.ReadAll(io.LimitReader(rs.Body, 1<<20)) // what came of it is shown
	r := &refusal{status: rs.StatusCode}
	kind, _, _ := mime.ParseMediaType(rs.Header.Get("Content-Type"))
	if kind != "application/problem+json" || json.Unmarshal(data, r) != nil {
		r.Detail = strings.TrimSpace(string(data))
	}
	if r.Detail == "" {
		r.Detail = fmt.Sprintf("rejected with status %d", rs.StatusCode)
	}
	return r
}
