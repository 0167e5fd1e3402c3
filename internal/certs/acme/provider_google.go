package acme

import (
	"bytes"
	"cmp"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// googleDNS uses the API of Google Cloud DNS, version 1. It obtains a token with the key of
// a service account (RFC 7523).
type googleDNS struct {
	restAPI
	account googleAccount
	key     *rsa.PrivateKey

	until time.Time // when the token in the header ends
	// what was read last: the API requires the whole set to remove it
	set googleSet
}

// googleAccount is the file of a service account's key.
type googleAccount struct {
	ProjectID  string `json:"project_id"`
	KeyID      string `json:"private_key_id"`
	PrivateKey string `json:"private_key"`
	Email      string `json:"client_email"`
	TokenURI   string `json:"token_uri"`
}

func openGoogleDNS(d *DNS) (provider, error) {
	c := d.Credentials
	p := &googleDNS{restAPI: newAPI(d, "https://dns.googleapis.com/dns/v1")}
	// No error has the text in it, which is secret.
	if json.Unmarshal([]byte(c["service_account"]), &p.account) != nil {
		return nil, errors.New("service_account is not the JSON file of a service account's key")
	}
	p.account.ProjectID = cmp.Or(c["project"], p.account.ProjectID)
	p.account.TokenURI = cmp.Or(p.account.TokenURI, "https://oauth2.googleapis.com/token")
	block, _ := pem.Decode([]byte(p.account.PrivateKey))
	if block == nil {
		return nil, errors.New("service_account has no private_key")
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, errors.New("private_key of service_account cannot be read")
	}
	var ok bool
	if p.key, ok = key.(*rsa.PrivateKey); !ok {
		return nil, errors.New("private_key of service_account is not an RSA key")
	}
	if p.account.ProjectID == "" {
		return nil, errors.New("service_account names no project; add project under credentials")
	}
	return newSetWriter(p), nil
}

// googleScope is what the token has to allow.
const googleScope = "https://www.googleapis.com/auth/ndev.clouddns.readwrite"

// assertion returns the signed statement with which the service account requests a token.
func (p *googleDNS) assertion(now time.Time) (string, error) {
	header, err := json.Marshal(map[string]string{"alg": "RS256", "typ": "JWT", "kid": p.account.KeyID})
	if err != nil {
		return "", err
	}
	claims, err := json.Marshal(map[string]any{"iss": p.account.Email, "scope": googleScope, "aud": p.account.TokenURI, "iat": now.Unix(), "exp": now.Add(time.Hour).Unix()})
	if err != nil {
		return "", err
	}
	text := base64.RawURLEncoding.EncodeToString(header) + "." + base64.RawURLEncoding.EncodeToString(claims)
	sum := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, p.key, crypto.SHA256, sum[:])
	if err != nil {
		return "", err
	}
	return text + "." + base64.RawURLEncoding.EncodeToString(signature), nil
}

// login requests a token, unless one is still valid.
func (p *googleDNS) login(ctx context.Context) error {
	now := time.Now()
	if now.Before(p.until) {
		return nil
	}
	assertion, err := p.assertion(now)
	if err != nil {
		return err
	}
	form := url.Values{"grant_type": {"urn:ietf:params:oauth:grant-type:jwt-bearer"}, "assertion": {assertion}}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.account.TokenURI, strings.NewReader(form.Encode()))
	if err != nil {
		return errors.New("token_uri of service_account is not a URL")
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer, err := call(req)
	if err != nil {
		return err
	}
	var token struct {
		AccessToken string `json:"access_token"`
		ExpiresIn   int    `json:"expires_in"`
	}
	if err := json.NewDecoder(bytes.NewReader(answer)).Decode(&token); err != nil || token.AccessToken == "" {
		return errors.New("the token endpoint answers no token")
	}
	p.header.Set("Authorization", "Bearer "+token.AccessToken)
	p.until = now.Add(time.Duration(token.ExpiresIn)*time.Second - time.Minute)
	return nil
}

// googleSet is a set of records as the API writes it.
type googleSet struct {
	Name   string   `json:"name"`
	Type   string   `json:"type"`
	TTL    int      `json:"ttl"`
	Values []string `json:"rrdatas"`
}

func (p *googleDNS) zone(ctx context.Context, zone string) (string, error) {
	if err := p.login(ctx); err != nil {
		return "", err
	}
	zones := "/projects/" + url.PathEscape(p.account.ProjectID) + "/managedZones"
	var found struct {
		ManagedZones []struct{ Name, Visibility string }
	}
	if err := p.request(ctx, http.MethodGet, zones+"?dnsName="+url.QueryEscape(zone+"."), nil, &found); err != nil {
		return "", err
	}
	for _, z := range found.ManagedZones {
		if z.Visibility != "private" {
			return zones + "/" + url.PathEscape(z.Name), nil
		}
	}
	return "", noZone(zone, "project "+p.account.ProjectID+" has no public zone with this name")
}

func (p *googleDNS) read(ctx context.Context, zone, sub string) ([]string, error) {
	path, err := p.zone(ctx, zone)
	if err != nil {
		return nil, err
	}
	p.set = googleSet{Name: fullName(zone, sub), Type: "TXT", TTL: recordTTL}
	var found struct{ Rrsets []googleSet }
	if err := p.request(ctx, http.MethodGet, path+"/rrsets?name="+url.QueryEscape(p.set.Name)+"&type=TXT", nil, &found); err != nil {
		return nil, err
	}
	if len(found.Rrsets) > 0 {
		p.set = found.Rrsets[0]
	}
	return unquoted(p.set.Values), nil
}

func (p *googleDNS) write(ctx context.Context, zone, _ string, values []string) error {
	path, err := p.zone(ctx, zone)
	if err != nil {
		return err
	}
	change := map[string][]googleSet{}
	if len(p.set.Values) > 0 {
		change["deletions"] = []googleSet{p.set}
	}
	if len(values) > 0 {
		set := p.set
		set.Values = quoted(values)
		change["additions"] = []googleSet{set}
	}
	var made struct{ ID, Status string }
	if err := p.request(ctx, http.MethodPost, path+"/changes", change, &made); err != nil {
		return err
	}
	return settled(ctx, func() (bool, error) {
		if made.Status == "done" {
			return true, nil
		}
		if made.ID == "" {
			return false, fmt.Errorf("the change was answered without an identifier")
		}
		return false, p.request(ctx, http.MethodGet, path+"/changes/"+url.PathEscape(made.ID), nil, &made)
	})
}
