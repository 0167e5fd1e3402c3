package main

import (
	"bytes"
	"net/http"
	"strings"
)

// fetch returns status and body of a URL, 0 when nobody answers.
func fetch(method, url, body string, fields ...string) (status int, text string, cert []byte) {
	rq, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		return 0, err.Error(), nil
	}
	rq.Header.Set("Content-Type", "application/json")
	for _, f := range fields {
		name, value, _ := strings.Cut(f, ": ")
		rq.Header.Set(name, value)
	}
	rs, err := newHTTPClient().Do(rq)
	if err != nil {
		return 0, err.Error(), nil
	}
	defer rs.Body.Close()
	var b bytes.Buffer
	b.ReadFrom(rs.Body)
	if rs.TLS != nil {
		cert = rs.TLS.PeerCertificates[0].Raw
	}
	return rs.StatusCode, b.String(), cert
}
