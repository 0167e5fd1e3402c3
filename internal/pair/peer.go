package pair

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"headgate/internal/clock"
	"headgate/internal/store"
)

// The paths that machines of a group call.
const (
	pathPrefix    = "/node/v1"
	pathJoin      = pathPrefix + "/join"
	pathHello     = pathPrefix + "/hello"
	pathWatch     = pathPrefix + "/watch"
	pathAck       = pathPrefix + "/ack"
	pathList      = pathPrefix + "/list"
	pathFetch     = pathPrefix + "/fetch"
	pathCommit    = pathPrefix + "/commit"
	pathYield     = pathPrefix + "/yield"
	pathChallenge = pathPrefix + "/challenge"
	pathMessage   = pathPrefix + "/message"
)

// The bounds of what machines send each other, in bytes. A change has at most
// store.MaxChange bytes, which are a third more in JSON.
const (
	maxFrame   = 4 << 20
	maxRequest = 4 << 20
	maxReply   = 64 << 20
)

// hello is what a machine says of itself.
type hello struct {
	Name     string         `json:"name"`
	Address  string         `json:"address"`
	Role     Role           `json:"role"`
	Epoch    Epoch          `json:"epoch"`
	Position store.Position `json:"position"`
	Now      time.Time      `json:"now"`
}

// frame is one line of a stream: one of its fields is set.
type frame struct {
	Beat    *beat          `json:"beat,omitempty"`
	Batch   *store.Batch   `json:"batch,omitempty"`
	Records []store.Record `json:"records,omitempty"`
	Message *store.Message `json:"message,omitempty"`
	Failed  *failure       `json:"failed,omitempty"`
}

// beat is sent while there is nothing else.
type beat struct {
	Now      time.Time      `json:"now"`
	Position store.Position `json:"position"`
}

// failure is an error between machines. Code says which one.
type failure struct {
	Code   string `json:"code"`
	Detail string `json:"detail"`
	// Conflict and Held are the values of those errors.
	Conflict *store.Conflict `json:"conflict,omitempty"`
	Held     *store.Held     `json:"held,omitempty"`
}

// failures are the errors that the other machine has to tell apart.
var failures = []struct {
	code   string
	status int
	err    error
}{
	{"too_old", http.StatusGone, store.ErrTooOld},
	{"rewound", http.StatusGone, store.ErrRewound},
	{"not_found", http.StatusNotFound, store.ErrNotFound},
	{"too_large", http.StatusRequestEntityTooLarge, store.ErrTooLarge},
	{"not_leader", http.StatusMisdirectedRequest, errNotLeader},
	{"removed", http.StatusForbidden, ErrRemoved},
	{"token", http.StatusForbidden, ErrToken},
	{"name", http.StatusConflict, ErrName},
	{"full", http.StatusConflict, ErrFull},
	{"throttled", http.StatusTooManyRequests, ErrThrottled},
	{"closed", http.StatusServiceUnavailable, store.ErrClosed},
	{"unavailable", http.StatusServiceUnavailable, store.ErrUnavailable},
}

func failureOf(err error) (*failure, int) {
	f := &failure{Code: "error", Detail: err.Error()}
	if errors.As(err, &f.Conflict) {
		f.Code = "conflict"
		return f, http.StatusConflict
	}
	for _, k := range failures {
		if errors.Is(err, k.err) {
			f.Code = k.code
			return f, k.status
		}
	}
	return f, http.StatusBadRequest
}

// remoteError is an error of the other machine.
type remoteError struct {
	failure
	is error
}

func (e *remoteError) Error() string { return e.Detail }
func (e *remoteError) Unwrap() error { return e.is }

func (f *failure) err() error {
	if f.Conflict != nil {
		return f.Conflict
	}
	for _, k := range failures {
		if f.Code == k.code {
			return &remoteError{*f, k.err}
		}
	}
	return &remoteError{failure: *f}
}

// peer is the other machine.
type peer struct {
	id        *Identity
	transport *http.Transport
}

// newPeer calls machines with a credential. Verify decides about their certificates.
func newPeer(id *Identity, verify func(tls.ConnectionState) error) (*peer, error) {
	config, err := id.clientConfig(verify)
	if err != nil {
		return nil, err
	}
	return &peer{id: id, transport: &http.Transport{
		TLSClientConfig: config, TLSHandshakeTimeout: callTimeout, ResponseHeaderTimeout: callTimeout + syncWait, MaxIdleConnsPerHost: 4, IdleConnTimeout: time.Minute,
	}}, nil
}

func (p *peer) close() { p.transport.CloseIdleConnections() }

// post sends a request of JSON and reads the response into out, which may be nil.
func post(ctx context.Context, transport *http.Transport, address string, body io.Reader, out any) error {
	rs, err := send(ctx, transport, address, body)
	if err != nil {
		return err
	}
	defer rs.Body.Close()
	data, err := io.ReadAll(io.LimitReader(rs.Body, maxReply+1))
	if err != nil {
		return err
	}
	if len(data) > maxReply {
		return fmt.Errorf("the response of %s: %w", address, store.ErrTooLarge)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(data, out)
}

// send sends a request and returns a response that is not an error.
func send(ctx context.Context, transport *http.Transport, address string, body io.Reader) (*http.Response, error) {
	rq, err := http.NewRequestWithContext(ctx, http.MethodPost, address, body)
	if err != nil {
		return nil, err
	}
	rq.Header.Set("Content-Type", "application/json")
	rs, err := transport.RoundTrip(rq)
	if err != nil {
		return nil, err
	}
	if rs.StatusCode == http.StatusOK {
		return rs, nil
	}
	defer rs.Body.Close()
	f := &failure{}
	data, _ := io.ReadAll(io.LimitReader(rs.Body, 64<<10)) // the status decides
	if json.Unmarshal(data, f) != nil || f.Code == "" {
		return nil, fmt.Errorf("it answered with status %d: it is no member of the group, or an older headgate", rs.StatusCode)
	}
	return nil, f.err()
}

// call calls a path of a machine, and again while a process that is being replaced answers. A
// connection that failed is no error of the change.
func (p *peer) call(ctx context.Context, address, path string, in, out any) error {
	ctx, stop := context.WithTimeout(ctx, callTimeout+syncWait)
	defer stop()
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	for {
		err := post(ctx, p.transport, address+path, bytes.NewReader(body), out)
		if !errors.Is(err, store.ErrClosed) {
			return err
		}
		// The process is being replaced, and the new one answers in a moment.
		p.close()
		if !clock.Sleep(ctx, closedPause) {
			return err
		}
	}
}

// hello asks a machine how it is, and tells it how this one is.
func (p *peer) hello(ctx context.Context, address string, own *hello) (*hello, error) {
	ctx, stop := context.WithTimeout(ctx, callTimeout)
	defer stop()
	out := &hello{}
	if err := p.call(ctx, address, pathHello, own, out); err != nil {
		return nil, err
	}
	if err := p.id.check(&out.Epoch); err != nil {
		return nil, err
	}
	return out, nil
}

// watch reads the stream of a leader until it ends or do returns an error.
func (p *peer) watch(ctx context.Context, address string, after store.Position, last map[string]store.Sequence, do func(*frame) error) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	timer := time.AfterFunc(silence, stop) // also while it connects
	defer timer.Stop()
	q := url.Values{"revision": {strconv.FormatUint(uint64(after.Revision), 10)}, "id": {string(after.ID)}}
	for name, n := range last {
		q.Set("last_"+name, strconv.FormatUint(uint64(n), 10))
	}
	rs, err := send(ctx, p.transport, address+pathWatch+"?"+q.Encode(), nil)
	if err != nil {
		return err
	}
	defer rs.Body.Close()
	lines := bufio.NewScanner(rs.Body)
	lines.Buffer(make([]byte, 64<<10), maxFrame)
	for lines.Scan() {
		timer.Reset(silence)
		f := &frame{}
		if err := json.Unmarshal(lines.Bytes(), f); err != nil {
			return fmt.Errorf("read the stream of the leader: %w", err)
		}
		if f.Failed != nil {
			return f.Failed.err()
		}
		if err := do(f); err != nil {
			return err
		}
		timer.Reset(silence)
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("read the stream of the leader: %w", err)
	}
	return errors.New("the leader has ended the stream")
}
