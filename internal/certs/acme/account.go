package acme

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	neturl "net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	protocol "github.com/mholt/acmez/v3/acme"

	"headgate/internal/file"
	"headgate/internal/server/safedial"
	"headgate/internal/store"
)

// accountRecord is an account as it is kept. The store seals it.
type accountRecord struct {
	Directory string           `json:"directory"`
	Email     string           `json:"email,omitempty"`
	Account   protocol.Account `json:"account"`
	Key       []byte           `json:"key"`                // PKCS 8, DER
	NextKey   []byte           `json:"next_key,omitempty"` // of a rollover under way
	Made      time.Time        `json:"made"`
}

// client returns the client for a directory. Each entry has its own, as nonces and
// authorities belong to it.
func (m *Manager) client(ctx context.Context, e *Config, url string) (*protocol.Client, error) {
	var authorities *x509.CertPool // nil: those of the system
	if e.CAFile != "" {
		pem, err := file.Read(e.CAFile, 1<<20, "more than authorities can have")
		if err != nil {
			return nil, &Trouble{Code: "ca_file", Message: err.Error(), Hint: "name a PEM file with the directory's authorities", blocked: true}
		}
		authorities = x509.NewCertPool()
		if !authorities.AppendCertsFromPEM(pem) {
			return nil, &Trouble{Code: "ca_file", Message: e.CAFile + " holds no certificate in PEM form", Hint: "name a PEM file with the directory's authorities", blocked: true}
		}
	}
	b := &bounded{Transport: transport(authorities), limited: func(until time.Time) { m.limit(url, until) }}
	client := &http.Client{Timeout: m.pace.request, Transport: b, CheckRedirect: stayWithinHTTPS}
	var err error
	if b.directory, err = m.directory(ctx, client, m.agent, url); err != nil {
		client.CloseIdleConnections()
		return nil, err
	}
	if parsed, err := neturl.Parse(url); err == nil {
		b.url = parsed.String() // as requests have it
	}
	return &protocol.Client{
		Directory:    m.fresh(url),
		HTTPClient:   client,
		UserAgent:    m.agent,
		PollInterval: m.pace.poll,
		PollTimeout:  pollTimeout,
	}, nil
}

// transport returns the transport for authorities and providers, with generous time limits.
// It uses the proxy of the environment, and connects to no addresses that only this machine
// can reach. authorities are the trusted ones, nil for those of the system.
func transport(authorities *x509.CertPool) *http.Transport {
	t := safedial.Transport(authorities)
	t.Proxy, t.TLSHandshakeTimeout, t.ResponseHeaderTimeout = http.ProxyFromEnvironment, requestTimeout/2, requestTimeout
	return t
}

// fresh returns the URL of a directory in a form for which the library has no cached
// content: after an error of its own, an authority may have moved its resources.
func (m *Manager) fresh(url string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := m.mu.stale[url]; n > 0 {
		return url + "#" + strconv.Itoa(n)
	}
	return url
}

// distrust makes the next client ask a directory for its resources again.
func (m *Manager) distrust(url string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.stale[url] = m.mu.stale[url]%maxStale + 1
	delete(m.mu.directories, url)
}

// knownDirectory is the cached content of a directory.
type knownDirectory struct {
	body []byte
	at   time.Time
}

// directoryLife is how long a directory is cached. The library caches it for longer, so its
// own copy is never out of date.
const directoryLife = 6 * time.Hour

// directory returns the content of a directory. It is fetched here instead of in the
// library, which would block requests to all other authorities meanwhile.
func (m *Manager) directory(ctx context.Context, c *http.Client, agent, url string) ([]byte, error) {
	m.mu.Lock()
	known := m.mu.directories[url]
	m.mu.Unlock()
	if known.body != nil && m.now().Sub(known.at).Abs() < directoryLife {
		return known.body, nil
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", agent)
	resp, err := c.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, &Trouble{Code: "authority_error", Message: fmt.Sprintf("the directory %s responds with %s", url, resp.Status), Hint: "headgate will try again; check the URL of the directory", theirs: true}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.directories[url] = knownDirectory{body, m.now()}
	m.mu.stale[url] = m.mu.stale[url]%maxStale + 1 // the library is to read this one
	return body, nil
}

// maxStale bounds how many answers of one directory the library keeps.
const maxStale = 16

// accountName is where the account of an entry at a directory is kept.
func accountName(e *Config, url string) string {
	kid := ""
	if e.EAB != nil {
		kid = e.EAB.KeyID
	}
	sum := sha256.Sum256([]byte(url + "\x00" + strings.ToLower(e.Email) + "\x00" + kid))
	return hex.EncodeToString(sum[:8])
}

// account returns the account of an entry at a directory, and creates it if there is none.
// Its key is stored before it is sent to the authority, so that the same account is found
// after a crash.
func (m *Manager) account(ctx context.Context, c *protocol.Client, e *Config, url string) (protocol.Account, error) {
	key := store.PrefixAccount + accountName(e, url)
	defer m.lockAccount(key)() // entries that share one do not make it twice
	rec, rev, err := m.readAccount(ctx, key)
	if err != nil {
		return protocol.Account{}, err
	}
	if rec == nil {
		if rec, err = newAccount(e, url, m.now()); err != nil {
			return protocol.Account{}, err
		}
		if rev, err = m.writeAccount(ctx, key, rec, 0); err != nil {
			return protocol.Account{}, err
		}
	}
	signer, err := x509.ParsePKCS8PrivateKey(rec.Key)
	if err != nil {
		return protocol.Account{}, &Trouble{Code: "account_damaged", Message: "the account's key cannot be read: " + err.Error(), Hint: "restore the state from a backup, or remove " + key, blocked: true}
	}
	account := rec.Account
	account.PrivateKey = signer.(crypto.Signer)
	if account.Location != "" && account.Status != protocol.StatusDeactivated {
		return account, nil
	}
	if e.EAB != nil {
		if err := account.SetExternalAccountBinding(ctx, c, protocol.EAB{KeyID: e.EAB.KeyID, MACKey: e.EAB.HMACKey}); err != nil {
			return protocol.Account{}, &Trouble{Code: "bad_eab", Message: "the external account binding cannot be used: " + err.Error(), Hint: "copy key_id and hmac_key again from your account", blocked: true}
		}
	}
	if account, err = c.NewAccount(ctx, account); err != nil {
		return protocol.Account{}, err
	}
	rec.Account = account
	_, err = m.writeAccount(ctx, key, rec, rev)
	return account, err
}

// lockAccount locks an account until the returned function is called. Each account has its
// own lock, so that a slow authority does not block the others.
func (m *Manager) lockAccount(key string) (unlock func()) { return lockIn(&m.accounts, key) }

// lockIn locks the mutex of a key, which it makes if there is none yet.
func lockIn(locks *sync.Map, key string) (unlock func()) {
	lock, _ := locks.LoadOrStore(key, &sync.Mutex{})
	lock.(*sync.Mutex).Lock()
	return lock.(*sync.Mutex).Unlock
}

func newAccount(e *Config, url string, now time.Time) (*accountRecord, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	rec := &accountRecord{Directory: url, Email: e.Email, Key: der, Made: now}
	rec.Account.TermsOfServiceAgreed = true
	if e.Email != "" {
		rec.Account.Contact = []string{"mailto:" + e.Email}
	}
	return rec, nil
}

func (m *Manager) readAccount(ctx context.Context, key string) (*accountRecord, store.Revision, error) {
	entry, err := m.store.Get(ctx, key)
	if errors.Is(err, store.ErrNotFound) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, storeTrouble(err)
	}
	rec := &accountRecord{}
	if err := json.Unmarshal(entry.Value, rec); err != nil {
		return nil, 0, &Trouble{Code: "account_damaged", Message: fmt.Sprintf("the account kept as %s cannot be read: %v", key, err), Hint: "restore the state from a backup, or remove it", blocked: true}
	}
	return rec, entry.Revision, nil
}

func (m *Manager) writeAccount(ctx context.Context, key string, rec *accountRecord, rev store.Revision) (store.Revision, error) {
	data, err := json.Marshal(rec)
	if err != nil {
		return 0, err
	}
	rev, err = m.store.Commit(ctx, store.Change{If: []store.Condition{{Key: key, Revision: rev}}, Put: []store.Entry{{Key: key, Value: data}}, Who: who, Why: "account at " + rec.Directory})
	if err != nil {
		return 0, storeTrouble(err)
	}
	return rev, nil
}

// forgetAccount removes an account that the authority does not know any more, so
// that the next try makes another.
func (m *Manager) forgetAccount(ctx context.Context, e *Config, url string) {
	key := store.PrefixAccount + accountName(e, url)
	if _, err := m.store.Commit(ctx, store.Change{Delete: []string{key}, Who: who, Why: "unknown at " + url}); err != nil {
		m.log.Error("forget an account that the authority does not know", "directory", url, "error", err)
	}
}

// Rollover gives the account of an entry a new key (RFC 8555, section 7.3.5). The new key
// is stored before it is sent to the authority; after a crash, the next call finds out
// which key the authority knows.
func (m *Manager) Rollover(ctx context.Context, entry string) error {
	e := m.entry(entry)
	if e == nil {
		return fmt.Errorf("no acme entry %q", entry)
	}
	url := directoryOf(e.Directory).url
	c, err := m.client(ctx, e, url)
	if err != nil {
		return err
	}
	defer c.HTTPClient.CloseIdleConnections()
	account, err := m.account(ctx, c, e, url)
	if err != nil {
		return err
	}
	key := store.PrefixAccount + accountName(e, url)
	defer m.lockAccount(key)()
	rec, rev, err := m.readAccount(ctx, key)
	if err != nil {
		return err
	}
	if rec.NextKey == nil {
		fresh, err := newAccount(e, url, m.now())
		if err != nil {
			return err
		}
		rec.NextKey = fresh.Key
		if rev, err = m.writeAccount(ctx, key, rec, rev); err != nil {
			return err
		}
	}
	next, err := x509.ParsePKCS8PrivateKey(rec.NextKey)
	if err != nil {
		return err
	}
	if _, err := c.AccountKeyRollover(ctx, account, next.(crypto.Signer)); err != nil {
		known := account
		known.PrivateKey = next.(crypto.Signer)
		if _, asked := c.GetAccount(ctx, known); asked != nil {
			return troubleOf(err)
		}
	}
	rec.Key, rec.NextKey = rec.NextKey, nil
	_, err = m.writeAccount(ctx, key, rec, rev)
	return err
}

// bounded is a transport that limits responses to maxResponse bytes, because a directory
// may be run by anyone. It records Retry-After.
type bounded struct {
	*http.Transport
	limited func(until time.Time)
	// the content of the directory at url, for the library
	directory []byte
	url       string
}

const maxResponse = 4 << 20

// maxRedirects is how often an authority may send us elsewhere for one request.
const maxRedirects = 5

// stayWithinHTTPS follows redirects of an authority, except to plain HTTP.
func stayWithinHTTPS(r *http.Request, via []*http.Request) error {
	switch {
	case r.URL.Scheme != "https":
		return fmt.Errorf("the authority redirects to %s, which is not https", r.URL.Redacted())
	case len(via) >= maxRedirects:
		return fmt.Errorf("the authority redirects without end: more than %d redirects", maxRedirects)
	}
	return nil
}

// RoundTrip sends a request.
func (b *bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	if asked, _, _ := strings.Cut(r.URL.String(), "#"); b.directory != nil && r.Method == http.MethodGet && asked == b.url {
		return &http.Response{
			Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
			Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(b.directory)), ContentLength: int64(len(b.directory)),
		}, nil
	}
	resp, err := b.Transport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	resp.Body = safedial.Limit(resp.Body, maxResponse)
	if resp.StatusCode == http.StatusTooManyRequests {
		b.limited(retryAfter(resp.Header.Get("Retry-After"), time.Now()))
	}
	return resp, nil
}

// storeTrouble is the problem that state cannot be stored; no order is placed then.
func storeTrouble(err error) *Trouble {
	return &Trouble{Code: "store", Message: cut(err.Error()), Hint: "no orders are placed while state cannot be stored", blocked: true, after: 15 * time.Second}
}
