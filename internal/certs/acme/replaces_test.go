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

// Authorities have many ways to say that they cannot replace a certificate.
func TestAnOrderIsPlacedWithoutReplacesWhereThatIsRefused(t *testing.T) {
	for _, c := range []struct {
		name, problem string
		status        int
	}{
		{"an error of its own", `{"type":"urn:ietf:params:acme:error:serverInternal","detail":"could not find an order for the given certificate"}`, 500},
		{"malformed", `{"type":"urn:ietf:params:acme:error:malformed","detail":"could not find an order for the given certificate"}`, 400},
		{"unauthorized", `{"type":"urn:ietf:params:acme:error:unauthorized","detail":"certificate was issued to another account"}`, 403},
		{"another kind", `{"type":"urn:example:unknown","detail":"path parsing of 'replaces' failed"}`, 404},
		{"renewed already", `{"type":"urn:ietf:params:acme:error:alreadyReplaced","detail":"it was replaced"}`, 409},
	} {
		t.Run(c.name, func(t *testing.T) { placesWithoutReplaces(t, c.status, c.problem) })
	}
}

// An authority that was set up anew behind the same URL knows neither the account nor the
// certificate.
func TestACertificateIsRenewedAtAnAuthorityThatWasRebuilt(t *testing.T) {
	a := start(t, acmetest.Settings{})
	u := a.manager(newStore())
	u.setWanted(a.entry(), []string{"shop.example.com"})
	u.state("shop.example.com", Valid)
	serial := u.certificate("shop.example.com").Certificate.Leaf.SerialNumber
	a.Rebuild()
	if err := u.Order("shop.example.com"); err != nil {
		t.Fatal(err)
	}
	u.until("shop.example.com", "renewed", func(r *Record) bool { return r.State == Valid && len(r.Timeline) > 1 && r.last().Issued })
	if u.certificate("shop.example.com").Certificate.Leaf.SerialNumber.Cmp(serial) == 0 {
		t.Error("the certificate is the one before")
	}
}

// There are authorities without the kind of problem for an account that they do not know.
func TestAnUnknownAccountIsMadeAnew(t *testing.T) {
	for _, kind := range []string{"malformed", "unauthorized"} {
		t.Run(kind, func(t *testing.T) {
			a := start(t, acmetest.Settings{})
			var rebuilt atomic.Bool
			var orders atomic.Int32
			a.Meddle = func(w http.ResponseWriter, r *http.Request) bool {
				if !rebuilt.Load() || !strings.Contains(r.URL.Path, "order-plz") || orders.Add(1) > 2 {
					return false
				}
				w.Header().Set("Content-Type", "application/problem+json")
				w.WriteHeader(http.StatusForbidden)
				io.WriteString(w, `{"type":"urn:ietf:params:acme:error:`+kind+`","detail":"no such key","status":403}`)
				return true
			}
			u := a.manager(newStore())
			u.setWanted(a.entry(), []string{"shop.example.com"})
			u.state("shop.example.com", Valid)
			a.Rebuild()
			rebuilt.Store(true)
			if err := u.Order("shop.example.com"); err != nil {
				t.Fatal(err)
			}
			r := u.until("shop.example.com", "renewed", func(r *Record) bool { return r.State == Valid && len(r.Timeline) > 1 && r.last().Issued })
			if n := orders.Load(); n != 3 || len(r.Timeline) != 2 {
				t.Errorf("%d requests in %d orders, want 3 in 2: as before, without replaces, and with another account", n, len(r.Timeline))
			}
		})
	}
}

func placesWithoutReplaces(t *testing.T, status int, problem string) {
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
		w.WriteHeader(status)
		io.WriteString(w, problem)
		return true
	}
	u := a.manager(newStore())
	u.setWanted(a.entry(), []string{"shop.example.com"})
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
