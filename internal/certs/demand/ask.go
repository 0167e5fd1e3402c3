package demand

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"headgate/internal/certs/acme"
)

// The limits of requests to applications.
const (
	askTime   = 5 * time.Second
	maxAsking = 16
	askBody   = 4 << 10 // is read of the response, so that the connection can be used again
)

// Allowed returns whether a host may have a certificate: nil if so, an error that wraps
// acme.ErrNotAllowed if not, and another one if that is not known. It takes at most 5
// seconds, and ignores what was refused before.
func (g *Gate) Allowed(ctx context.Context, d *acme.Demand, host string) error {
	if d.Settings.Lists(host) {
		return nil
	}
	if d.Settings.Ask == "" {
		return fmt.Errorf("%w by the list", acme.ErrNotAllowed)
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	select {
	case g.asking <- struct{}{}:
		defer func() { <-g.asking }()
	case <-ctx.Done():
		return fmt.Errorf("%d requests to applications are in progress: %w", maxAsking, ctx.Err())
	}
	g.counts[asked].Add(1)
	return g.requestPermission(ctx, d.Settings.Ask, host)
}

// requestPermission requests the URL of an application for a host.
func (g *Gate) requestPermission(ctx context.Context, at, host string) error {
	u, err := url.Parse(at)
	if err != nil {
		return err
	}
	q := u.Query()
	q.Set("domain", host)
	u.RawQuery = q.Encode()
	rq, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return err
	}
	rq.Header.Set("User-Agent", g.Agent)
	rs, err := g.client.Do(rq)
	if u := (*url.Error)(nil); errors.As(err, &u) {
		return u.Err // without the URL, which may have a secret in its query
	}
	if err != nil {
		return err
	}
	defer rs.Body.Close()
	io.CopyN(io.Discard, rs.Body, askBody)
	switch {
	case rs.StatusCode >= 200 && rs.StatusCode < 300:
		return nil
	case rs.StatusCode >= 500 || rs.StatusCode == http.StatusTooManyRequests:
		return fmt.Errorf("the application responded with status %d", rs.StatusCode)
	}
	return fmt.Errorf("%w: the application responded with status %d", acme.ErrNotAllowed, rs.StatusCode)
}
