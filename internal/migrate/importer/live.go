package importer

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// maxAnswer bounds one answer of a proxy that runs, in bytes.
const maxAnswer = 64 << 20

// Base returns the address of a proxy that runs: its scheme and host. Whose says whose
// address it is, and such as what, for the error.
func Base(address, whose, example string) (string, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil {
		return "", fmt.Errorf("invalid address %q of %s, want one like %s", address, whose, example)
	}
	return u.Scheme + "://" + u.Host, nil
}

// Fetch requests a part of the configuration of a running proxy. A token with a colon
// in it is a name and a password, others are sent as Bearer. The client limits the
// time.
func Fetch(ctx context.Context, client *http.Client, address, token string) ([]byte, error) {
	rq, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	if name, password, ok := strings.Cut(token, ":"); ok {
		rq.SetBasicAuth(name, password)
	} else if token != "" {
		rq.Header.Set("Authorization", "Bearer "+token)
	}
	rq.Header.Set("Accept", "application/json")
	rs, err := client.Do(rq)
	if err != nil {
		return nil, err
	}
	defer rs.Body.Close()
	data, err := io.ReadAll(io.LimitReader(rs.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", address, err)
	case len(data) > maxAnswer:
		return nil, fmt.Errorf("%s: the answer is larger than %d MiB", address, maxAnswer>>20)
	case rs.StatusCode == http.StatusUnauthorized || rs.StatusCode == http.StatusForbidden:
		return nil, fmt.Errorf("%s: status %d: the token is missing, wrong or expired, or may not read this", address, rs.StatusCode)
	case rs.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("%s: status %d; is this the address of its API?", address, rs.StatusCode)
	}
	return data, nil
}
