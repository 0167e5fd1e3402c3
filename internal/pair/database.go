package pair

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"headgate/internal/file"
	"headgate/internal/store"
)

// Access is what a machine needs to use a database that machines share. A process that has it can read
// all private keys.
type Access struct {
	// URL is the address of the database, with the password.
	URL string `json:"url"`
	// Key is that of the store, as the file with it has it.
	Key []byte `json:"key"`
	// Files are the contents of the files that the URL names, by the parameter.
	Files map[string][]byte `json:"files,omitempty"`
}

// fileParameters are the parameters of the URL of a database that name files.
var fileParameters = []string{"sslrootcert", "sslcert", "sslkey"}

// maxAccessFile is how large such a file can be, in bytes.
const maxAccessFile = 256 << 10

// AccessTo returns the access to a database with a URL, and the key of its store. It reads the
// files that the URL names.
func AccessTo(at *url.URL, key []byte) (*Access, error) {
	a := &Access{URL: at.String(), Key: key, Files: map[string][]byte{}}
	for _, parameter := range fileParameters {
		name := at.Query().Get(parameter)
		if name == "" || name == "system" {
			continue
		}
		data, err := file.Read(name, maxAccessFile, "a certificate or key is shorter")
		if err != nil {
			return nil, fmt.Errorf("read %s of the database's address: %w", parameter, err)
		}
		a.Files[parameter] = data
	}
	return a, nil
}

// The names of what a machine that has joined a database has in its state directory.
const (
	accessURL = "store"
	accessKey = "store.key"
)

// save writes the access to a state directory. It returns the name of the file with the URL, in
// which the paths of files are those of this machine.
func (a *Access) save(dir string) (string, error) {
	at, err := url.Parse(a.URL)
	if err != nil {
		return "", errors.New("the machine has sent an address of a database that cannot be read")
	}
	q := at.Query()
	for _, parameter := range fileParameters {
		data, has := a.Files[parameter]
		if !has {
			continue
		}
		name := filepath.Join(dir, accessURL+"."+parameter)
		if err := file.Replace(name, data); err != nil {
			return "", err
		}
		q.Set(parameter, name)
	}
	at.RawQuery = q.Encode()
	name := filepath.Join(dir, accessURL)
	return name, errors.Join(file.Replace(filepath.Join(dir, accessKey), a.Key), file.Replace(name, []byte(at.String()+"\n")))
}

// InvitationsOptions are what Invitations need.
type InvitationsOptions struct {
	// Store is the shared store, which keeps the invitations.
	Store store.Store
	// Access returns what a machine that joins gets.
	Access func() (*Access, error)
	// Audit makes the record of a machine that joins: see Options.
	Audit func(action, object, who, from string) store.Record
	// Log reports who joins, and who tries to. Nil discards it.
	Log *slog.Logger
}

// Invitations let machines join a database that several share, with a token that one of them has
// printed. It is valid once and for an hour, on the machine that it names. Each has a key of its
// own, by which the machine that joins recognises the other one. Its methods may be called by
// several goroutines at once.
type Invitations struct {
	o   InvitationsOptions
	log *slog.Logger

	mu struct {
		sync.Mutex
		since  time.Time // the present minute
		failed int       // requests in it that were refused
	}
}

// NewInvitations returns the invitations of a shared store.
func NewInvitations(o InvitationsOptions) *Invitations {
	v := &Invitations{o: o, log: o.Log}
	if v.log == nil {
		v.log = slog.New(slog.DiscardHandler)
	}
	return v
}

// databaseInvitation is what is stored of a token, by the group in it.
type databaseInvitation struct {
	invitation
	// Secret is the SHA-256 of the secret.
	Secret []byte `json:"secret"`
	// Chain is the certificate, and that of its authority. Key is the seed of the private key.
	Chain [][]byte `json:"chain"`
	Key   []byte   `json:"key"`
}

// Check returns why Invite would fail.
func (v *Invitations) Check(ctx context.Context, name, address string) error {
	if _, err := CheckAddress(address); err != nil {
		return err
	}
	if name == "" {
		return nil
	}
	return v.checkName(ctx, name)
}

// checkName returns why a machine cannot join with a name.
func (v *Invitations) checkName(ctx context.Context, name string) error {
	if err := CheckName(name); err != nil {
		return err
	}
	nodes, err := store.Nodes(ctx, v.o.Store)
	if err != nil {
		return err
	}
	for i := range nodes {
		if nodes[i].Name == name && nodes[i].Running(store.Time(v.o.Store)) {
			return fmt.Errorf("%w: a machine %s shares the database already; give the new one another name", ErrName, name)
		}
	}
	return nil
}

// Invite makes a token with which one machine can join, with a name or any if it is "". Address is
// the URL of the admin listener of this machine. Record is appended to the audit in the same
// commit. The error wraps ErrName if a machine has the name.
func (v *Invitations) Invite(ctx context.Context, name, address, by string, record store.Record) (*Invited, error) {
	if err := v.Check(ctx, name, address); err != nil {
		return nil, err
	}
	a, err := newAuthority()
	if err != nil {
		return nil, err
	}
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := a.issue("invitation", public, nil)
	if err != nil {
		return nil, err
	}
	authority, err := x509.ParseCertificate(a.Certificate)
	if err != nil {
		return nil, err
	}
	t := &token{Address: strings.TrimSuffix(address, "/"), Group: a.Group, Pin: pinOf(authority), Leader: publicPin(public), Secret: newSecret(), Database: true}
	digest := sha256.Sum256(t.Secret)
	value, err := json.Marshal(databaseInvitation{invitation{name, by}, digest[:], [][]byte{der, a.Certificate}, private.Seed()})
	if err != nil {
		return nil, err
	}
	expires := store.Time(v.o.Store).Add(TokenLife)
	_, err = v.o.Store.Commit(ctx, store.Change{
		Put: []store.Entry{{Key: store.PrefixGroupInvitation + a.Group, Value: value, TTL: TokenLife}}, Append: []store.Record{record}, Who: by, Why: "invitation of a machine",
	})
	return &Invited{Token: t.text(), Expires: expires}, err
}

// find returns the invitation for a TLS server name.
func (v *Invitations) find(ctx context.Context, serverName string) (store.Entry, *databaseInvitation, error) {
	group, ok := strings.CutSuffix(serverName, domain)
	if _, err := hex.DecodeString(group); !ok || err != nil || group == "" {
		return store.Entry{}, nil, ErrToken
	}
	e, err := v.o.Store.Get(ctx, store.PrefixGroupInvitation+group)
	if errors.Is(err, store.ErrNotFound) {
		err = ErrToken
	}
	in := &databaseInvitation{}
	if err == nil {
		err = json.Unmarshal(e.Value, in)
	}
	return e, in, err
}

// Config returns the TLS of a connection for an invitation; nil if it is for something else. It is
// for the admin listener.
func (v *Invitations) Config(client *tls.ClientHelloInfo) *tls.Config {
	if !strings.HasSuffix(client.ServerName, domain) {
		return nil
	}
	_, in, err := v.find(client.Context(), client.ServerName)
	if err != nil {
		return nil
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: []string{"http/1.1"}, SessionTicketsDisabled: true,
		Certificates: []tls.Certificate{{Certificate: in.Chain, PrivateKey: ed25519.NewKeyFromSeed(in.Key)}},
	}
}

// Serves reports whether a connection was made with the TLS of Config.
func (v *Invitations) Serves(state *tls.ConnectionState) bool {
	return state != nil && strings.HasSuffix(state.ServerName, domain)
}

// maxRefused is how many requests to join are refused in a minute before all are.
const maxRefused = 10

// throttled notes a request that was refused, or with none returns whether requests are refused
// for the rest of the minute.
func (v *Invitations) throttled(refused int) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if now := time.Now(); now.Sub(v.mu.since) >= time.Minute {
		v.mu.since, v.mu.failed = now, 0
	}
	v.mu.failed += refused
	return v.mu.failed >= maxRefused
}

// ServeHTTP answers a machine that joins, on connections that Serves reports.
func (v *Invitations) ServeHTTP(w http.ResponseWriter, rq *http.Request) {
	err := ErrThrottled
	if !v.throttled(0) {
		err = v.serve(w, rq)
	}
	if err == nil {
		return
	}
	v.throttled(1)
	v.log.Warn("a machine was rejected", "address", rq.RemoteAddr, "path", rq.URL.Path, "error", err)
	f, status := failureOf(err)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	writeJSON(w, f)
}

func (v *Invitations) serve(w http.ResponseWriter, rq *http.Request) error {
	if !v.Serves(rq.TLS) || rq.Method != http.MethodPost || rq.URL.Path != pathJoin {
		return errors.New("unknown request")
	}
	rq.Body = http.MaxBytesReader(w, rq.Body, maxToken)
	return answer(w, rq, func(ctx context.Context, in *joinRequest) (*Access, error) {
		return v.admit(ctx, in, rq.TLS.ServerName, rq.RemoteAddr)
	})
}

// admit checks the request of a machine that joins. The commit uses up the token, so of two
// requests with one token one is refused.
func (v *Invitations) admit(ctx context.Context, rq *joinRequest, serverName, from string) (*Access, error) {
	e, in, err := v.find(ctx, serverName)
	if err != nil {
		return nil, err
	}
	digest := sha256.Sum256(rq.Secret)
	if subtle.ConstantTimeCompare(digest[:], in.Secret) != 1 {
		return nil, ErrToken
	}
	if in.Name != "" && in.Name != rq.Name {
		return nil, fmt.Errorf("%w: the token is for the machine %s", ErrName, in.Name)
	}
	if err := v.checkName(ctx, rq.Name); err != nil {
		return nil, err
	}
	access, err := v.o.Access()
	if err != nil {
		return nil, err
	}
	_, err = v.o.Store.Commit(ctx, store.Change{
		If: []store.Condition{{Key: e.Key, Revision: e.Revision}}, Delete: []string{e.Key},
		Append: []store.Record{v.o.Audit("node.join", "node "+rq.Name, in.By, from)}, Who: in.By, Why: "machine " + rq.Name + " joins",
	})
	switch {
	case errors.As(err, new(*store.Conflict)):
		return nil, ErrToken
	case err != nil:
		return nil, err
	}
	v.log.Info("machine joins the shared database", "node", rq.Name, "from", from, "invited_by", in.By)
	return access, nil
}

// ForDatabase reports whether the text of a token is one with which a machine joins a database.
func ForDatabase(text string) bool {
	t, err := readToken(text)
	return err == nil && t.Database
}

// JoinedDatabase is the result of JoinDatabase.
type JoinedDatabase struct {
	// Address is the machine that has answered.
	Address string
	// File has the address of the database.
	File string
	// Backup is the folder with what the state directory had, "" if it had nothing.
	Backup string
}

// JoinDatabase gives the machine with a state directory the access to the database of the machine
// that has issued a token. What the directory has is moved to a folder in it; nothing of it is
// merged. No headgate must use the directory.
func JoinDatabase(ctx context.Context, dir, text, name string) (*JoinedDatabase, error) {
	t, err := readToken(text)
	if err == nil && !t.Database {
		err = errors.New("the token is for a pair of machines")
	}
	if err == nil {
		err = CheckName(name)
	}
	if err != nil {
		return nil, err
	}
	access := &Access{}
	if err := requestJoin(ctx, t, &joinRequest{Secret: t.Secret, Name: name}, access); err != nil {
		return nil, err
	}
	if access.URL == "" || len(bytes.TrimSpace(access.Key)) == 0 {
		return nil, errors.New("the machine has sent no access to a database")
	}
	dir, err = filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	backup, err := setAside(dir)
	if err != nil {
		return nil, fmt.Errorf("set the state of this machine aside: %w", err)
	}
	saved, err := access.save(dir)
	return &JoinedDatabase{Address: t.Address, File: saved, Backup: backup}, err
}
