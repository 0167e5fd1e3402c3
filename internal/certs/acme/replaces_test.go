package acme

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"headgate/internal/certs/acme/acmetest"
)

// TestAnAuthorityThatFailsAtReplacesIsAskedWithout renews at an authority that has an
// error of its own whenever an order names the certificate that it replaces.
func TestAnAuthorityThatFailsAtReplacesIsAskedWithout(t *testing.T) {
	a := start(t, acmetest.Settings{})
	var failed atomic.Int32
	a.Meddle = func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.URL.Path, "order-plz") {
			return false
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		var signed struct{ Payload string }
		if err := json.Unmarshal(body, &signed); err != nil {
			t.Error(err)
		}
		payload, err := base64.RawURLEncoding.DecodeString(signed.Payload)
		if err != nil {
			t.Error(err)
		}
		if !strings.Contains(string(payload), `"replaces"`) {
			return false
		}
		failed.Add(1)
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusInternalServerError)
		io.WriteString(w, `{"type":"urn:ietf:params:acme:error:serverInternal","detail":"could not find an order for the given certificate","status":500}`)
		return true
	}
	u := a.manager(newStore())
	u.want(a.entry(), []string{"shop.example.com"})
	u.state("shop.example.com", Valid)
	serial := u.certificate("shop.example.com").Certificate.Leaf.SerialNumber
	if err := u.Order("shop.example.com"); err != nil {
		t.Fatal(err)
	}
	u.until("shop.example.com", "renewed", func(r *Record) bool { return r.State == Valid && len(r.Timeline) > 1 && r.last().Issued })
	if u.certificate("shop.example.com").Certificate.Leaf.SerialNumber.Cmp(serial) == 0 {
		t.Error("the certificate is the one before")
	}
	if failed.Load() == 0 {
		t.Error("no order named the one it replaces")
	}
}
