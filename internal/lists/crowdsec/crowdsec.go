// Package crowdsec reads the decisions of a CrowdSec engine from its local API (LAPI), as a
// bouncer does: Client asks for a stream of new and deleted decisions, Decisions keeps
// count of which networks are banned by them.
//
// It speaks to version 1.4 and later of the engine. It sends no metrics, and takes no part
// in what the engine decides.
package crowdsec

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// The bounds of an answer.
const (
	timeout  = time.Minute
	maxBytes = 256 << 20 // a decision has about 200 bytes
)

// Client asks one engine. It is for one goroutine.
type Client struct {
	http        *http.Client
	base        string
	key, agent  string
	initialised bool
}

// New returns a client of the engine at a URL, which sends requests through transport.
// Version is that of headgate.
func New(base, key, version string, transport http.RoundTripper) *Client {
	return &Client{
		http: &http.Client{Timeout: timeout, Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
		base: strings.TrimSuffix(base, "/"), key: key, agent: "crowdsec-headgate-bouncer/v" + strings.TrimPrefix(version, "v"),
	}
}

// Decision is one decision of the engine.
type Decision struct {
	ID       int64  `json:"id"`
	Type     string `json:"type"`
	Scope    string `json:"scope"`
	Value    string `json:"value"`
	Origin   string `json:"origin"`
	Scenario string `json:"scenario"`
	Duration string `json:"duration"`
}

// Delta is what changed since the engine was asked last by this key.
type Delta struct {
	// Whole says that New are all decisions there are.
	Whole   bool
	New     []Decision
	Deleted []Decision
}

// ErrKey says that the engine does not know the key.
var ErrKey = errors.New("the engine does not accept the key")

// Stream asks for what changed. Whole asks for all decisions; the first question always
// does, and so does the next one after an error, since the engine does not repeat a delta
// that was lost.
func (c *Client) Stream(ctx context.Context, whole bool) (Delta, error) {
	whole = whole || !c.initialised
	c.initialised = false
	query := url.Values{"startup": {fmt.Sprint(whole)}, "scopes": {"ip,range"}, "dedup": {"false"}}
	rq, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+"/v1/decisions/stream?"+query.Encode(), nil)
	if err != nil {
		return Delta{}, err
	}
	rq.Header.Set("X-Api-Key", c.key)
	rq.Header.Set("User-Agent", c.agent)
	rq.Header.Set("Accept", "application/json")
	rs, err := c.http.Do(rq)
	if err != nil {
		if u := (*url.Error)(nil); errors.As(err, &u) {
			err = u.Err
		}
		return Delta{}, err
	}
	defer rs.Body.Close()
	switch rs.StatusCode {
	case http.StatusOK:
	case http.StatusForbidden, http.StatusUnauthorized:
		return Delta{}, ErrKey
	default:
		return Delta{}, fmt.Errorf("the engine answered %s", rs.Status)
	}
	var delta Delta
	if err := json.NewDecoder(io.LimitReader(rs.Body, maxBytes)).Decode(&delta); err != nil {
		return Delta{}, fmt.Errorf("read the engine's answer: %w", err)
	}
	c.initialised, delta.Whole = true, whole
	return delta, nil
}
