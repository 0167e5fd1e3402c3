package pair

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"headgate/internal/store"
	"headgate/internal/store/local"
)

// tokenMark begins the text of a token, so that one that was pasted somewhere is found.
const tokenMark = "hgnode_"

// maxToken is how long the text of a token may be, in bytes.
const maxToken = 4096

// token is what a machine joins with: where the leader is, how it is recognised, and the
// secret that proves that an admin has invited the machine.
type token struct {
	Address string `json:"address"`
	Group   string `json:"group"`
	// Pin is the SHA-256 of the public key of the group's authority.
	Pin string `json:"pin"`
	// Leader is that of the machine that has issued the token.
	Leader string `json:"leader"`
	Secret []byte `json:"secret"`
	// Database says that the machine joins a database: see Invitations.
	Database bool `json:"database,omitempty"`
}

func (t *token) text() string {
	data, err := json.Marshal(t)
	if err != nil {
		panic(err) // strings and bytes
	}
	return tokenMark + base64.RawURLEncoding.EncodeToString(data)
}

// IsToken reports whether a text looks like a token, to refuse it where others can see it.
func IsToken(text string) bool { return strings.Contains(text, tokenMark) }

// readToken reads the text of a token.
func readToken(text string) (*token, error) {
	body, ok := strings.CutPrefix(strings.TrimSpace(text), tokenMark)
	t := &token{}
	data, err := base64.RawURLEncoding.DecodeString(body)
	if !ok || err != nil || len(body) > maxToken || json.Unmarshal(data, t) != nil || len(t.Secret) < 16 || len(t.Pin) != 64 || len(t.Leader) != 64 || t.Group == "" {
		return nil, errors.New("this is not a token that \"headgate node invite\" has printed")
	}
	if t.Address, err = CheckAddress(t.Address); err != nil {
		return nil, err
	}
	return t, nil
}

// invitation is what the leader stores of a token.
type invitation struct {
	// Name is that of the machine that may join, "" for any.
	Name string `json:"name,omitempty"`
	By   string `json:"by"`
}

func invitationKey(secret []byte) string {
	sum := sha256.Sum256(secret)
	return store.PrefixGroupInvitation + hex.EncodeToString(sum[:])
}

// Invited is a new token.
type Invited struct {
	// Token is the text to join with.
	Token string
	// Expires is when it becomes invalid, by the leader's clock.
	Expires time.Time
}

// Invite makes a token with which one machine can join, with a name or any if it is "".
// Record, which may be nil, is appended to the audit in the same commit. The error is a
// *NotLeader on a follower, or wraps ErrFull or ErrName.
func (s *Store) Invite(ctx context.Context, name, by string, record *store.Record) (*Invited, error) {
	if err := s.CheckInvite(ctx, name); err != nil {
		return nil, err
	}
	authority, err := x509.ParseCertificate(s.id.Authority)
	if err != nil {
		return nil, err
	}
	own, err := s.id.leaf()
	if err != nil {
		return nil, err
	}
	t := &token{Address: s.o.Settings.Address, Group: s.id.Group, Pin: pinOf(authority), Leader: pinOf(own), Secret: make([]byte, 32)}
	rand.Read(t.Secret)
	value, err := json.Marshal(invitation{Name: name, By: by})
	if err != nil {
		return nil, err
	}
	c := store.Change{Put: []store.Entry{{Key: invitationKey(t.Secret), Value: value, TTL: TokenLife}}, Who: by, Why: "invitation of a machine"}
	if record != nil {
		c.Append = []store.Record{*record}
	}
	if _, err := s.Commit(ctx, c); err != nil {
		return nil, err
	}
	now, err := s.Now(ctx)
	return &Invited{Token: t.text(), Expires: now.Add(TokenLife)}, err
}

// CheckInvite returns why Invite would fail.
func (s *Store) CheckInvite(ctx context.Context, name string) error {
	if s.Role() != Leader {
		return s.refusal(nil)
	}
	members, err := s.Members(ctx)
	if err != nil {
		return err
	}
	return admissible(members, name)
}

// admissible returns why a machine cannot join.
func admissible(members []Member, name string) error {
	if name != "" {
		if err := CheckName(name); err != nil {
			return err
		}
	}
	for _, m := range members {
		if m.Name == name {
			return fmt.Errorf("%w: a machine %s is in the group already; remove it first with \"headgate node revoke %s\"", ErrName, name, name)
		}
	}
	if len(members) >= MaxMembers {
		return ErrFull
	}
	return nil
}

// joinRequest is what a machine sends to join.
type joinRequest struct {
	Secret  []byte `json:"secret"`
	Name    string `json:"name"`
	Address string `json:"address"`
	// Key is the public key of the credential. Proof is the signature of the secret with it.
	Key   []byte `json:"key"`
	Proof []byte `json:"proof"`
}

// joinResponse is what a machine gets.
type joinResponse struct {
	Authority   []byte `json:"authority"`
	Certificate []byte `json:"certificate"`
	// Leader is the name of the machine that has answered.
	Leader string `json:"leader"`
}

// admit checks the request of a machine that joins and issues its credential. The commit
// uses up the token, so of two requests with one token one is refused.
func (s *Store) admit(ctx context.Context, rq *joinRequest, from string) (*joinResponse, error) {
	if s.Role() != Leader {
		return nil, errNotLeader
	}
	key := invitationKey(rq.Secret)
	e, err := s.Get(ctx, key)
	if errors.Is(err, store.ErrNotFound) {
		return nil, ErrToken
	}
	if err != nil {
		return nil, err
	}
	var inv invitation
	if err := json.Unmarshal(e.Value, &inv); err != nil {
		return nil, err
	}
	if err := CheckName(rq.Name); err != nil {
		return nil, err
	}
	if inv.Name != "" && inv.Name != rq.Name {
		return nil, fmt.Errorf("%w: the token is for the machine %s", ErrName, inv.Name)
	}
	address, err := CheckAddress(rq.Address)
	if err != nil {
		return nil, err
	}
	if len(rq.Key) != ed25519.PublicKeySize || !ed25519.Verify(rq.Key, rq.Secret, rq.Proof) {
		return nil, errors.New("the request is not signed with the key of the credential")
	}
	members, err := s.Members(ctx)
	if err == nil {
		err = admissible(members, rq.Name)
	}
	if err != nil {
		return nil, err
	}
	rs, err := s.enrol(ctx, e, inv, rq, address, from)
	if err == nil {
		s.log.Info("machine joins the group", "node", rq.Name, "address", address, "from", from, "invited_by", inv.By, "members", len(members)+1)
	}
	return rs, err
}

// enrol commits a new member.
func (s *Store) enrol(ctx context.Context, e store.Entry, inv invitation, rq *joinRequest, address, from string) (*joinResponse, error) {
	a, _, err := s.authority(ctx)
	if err != nil {
		return nil, err
	}
	der, err := a.issue(rq.Name, rq.Key, nil)
	if err != nil {
		return nil, err
	}
	put, err := memberEntry(rq.Name, der, address)
	if err != nil {
		return nil, err
	}
	c := store.Change{
		If:  []store.Condition{{Key: e.Key, Revision: e.Revision}, {Key: put.Key}},
		Put: []store.Entry{put}, Delete: []string{e.Key}, Who: inv.By, Why: "machine " + rq.Name + " joins",
	}
	if s.o.Audit != nil {
		c.Append = append(c.Append, s.o.Audit("node.join", "node "+rq.Name, inv.By, from))
	}
	switch _, err = s.commitOwn(ctx, c, false); {
	case errors.As(err, new(*store.Conflict)):
		return nil, ErrToken
	case err != nil:
		return nil, err
	}
	return &joinResponse{Authority: a.Certificate, Certificate: der, Leader: s.id.Name}, nil
}

func memberEntry(name string, der []byte, address string) (store.Entry, error) {
	c, err := x509.ParseCertificate(der)
	if err != nil {
		return store.Entry{}, err
	}
	value, err := json.Marshal(member{Key: pinOf(c), Address: address, Joined: time.Now().UTC()})
	return store.Entry{Key: store.PrefixGroupMember + name, Value: value}, err
}

// Members returns the machines of the group by name.
func (s *Store) Members(ctx context.Context) ([]Member, error) {
	entries, _, err := s.Snapshot(ctx, store.PrefixGroupMember)
	if err != nil {
		return nil, err
	}
	all := make([]Member, 0, len(entries))
	for _, e := range entries {
		var m member
		if err := json.Unmarshal(e.Value, &m); err != nil {
			return nil, fmt.Errorf("read %s: %w", e.Key, err)
		}
		all = append(all, Member{Name: strings.TrimPrefix(e.Key, store.PrefixGroupMember), Address: m.Address, Joined: m.Joined})
	}
	return all, nil
}

// Remove revokes the credential of a machine. Its connections are closed, and the secret with
// which restored machines announce themselves is replaced. The error wraps
// store.ErrNotFound if there is none with the name.
func (s *Store) Remove(ctx context.Context, name, by string, record *store.Record) error {
	if name == s.id.Name {
		return fmt.Errorf("%w: it is the machine that leads; promote the other one first", ErrName)
	}
	key := store.PrefixGroupMember + name
	e, err := s.Get(ctx, key)
	if err != nil {
		return err
	}
	a, kept, err := s.authority(ctx)
	if err != nil {
		return err
	}
	a.revoke()
	value, err := json.Marshal(a)
	if err != nil {
		return err
	}
	c := store.Change{
		If:  []store.Condition{{Key: key, Revision: e.Revision}, {Key: kept.Key, Revision: kept.Revision}},
		Put: []store.Entry{{Key: kept.Key, Value: value}}, Delete: []string{key, store.PrefixNode + name}, Who: by, Why: "machine " + name + " is removed",
	}
	if record != nil {
		c.Append = []store.Record{*record}
	}
	if _, err := s.commitOwn(ctx, c, false); err != nil {
		return err
	}
	s.revoked()
	return nil
}

// Init makes a group whose only member is the machine with a state directory, which leads.
// If the state has a group already, as after a restore, the machine gets a new credential of
// it, which is announced to the other machine. No headgate must use the directory.
func Init(ctx context.Context, files *local.Store, name, address string) error {
	if err := CheckName(name); err != nil {
		return err
	}
	address, err := CheckAddress(address)
	if err != nil {
		return err
	}
	switch id, err := LoadIdentity(files.Dir()); {
	case files.Mirrors() && id == nil:
		return errors.New("the state directory is the copy of a database that machines share: they need no pair")
	case files.Mirrors():
		return errors.New("the state directory is the copy of another machine's: promote this machine instead")
	case id != nil:
		return fmt.Errorf("this machine is in a group already, as %s: to change its address, edit %s in the state directory", id.Name, SettingsName)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	a, number, known := &authority{}, uint64(0), false
	e, err := files.Get(ctx, store.KeyGroupAuthority)
	switch {
	case errors.Is(err, store.ErrNotFound):
		a, err = newAuthority()
	case err == nil:
		known, err = true, json.Unmarshal(e.Value, a)
	}
	if err != nil {
		return err
	}
	if e, err := files.Get(ctx, store.KeyEpoch); err == nil {
		var was Epoch
		if err := json.Unmarshal(e.Value, &was); err != nil {
			return err
		}
		number = was.Number
	}
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return err
	}
	var announced []*url.URL
	if known {
		announced = a.announcements(name, public)
		a.renew()
	}
	der, err := a.issue(name, public, announced)
	if err != nil {
		return err
	}
	id := &Identity{Group: a.Group, Name: name, Authority: a.Certificate, Certificate: der, Key: private.Seed()}
	put, err := memberEntry(name, der, address)
	if err != nil {
		return err
	}
	epoch := id.newEpoch(number+1, store.Position{}, 0)
	if err := commitGroup(ctx, files, a, put, epoch); err != nil {
		return err
	}
	settings := Settings{Address: address}
	return errors.Join(id.save(files.Dir()), settings.save(files.Dir()))
}

func commitGroup(ctx context.Context, files *local.Store, a *authority, put store.Entry, epoch Epoch) error {
	kept, err := json.Marshal(a)
	if err != nil {
		return err
	}
	value, err := json.Marshal(epoch)
	if err != nil {
		return err
	}
	_, err = files.Commit(ctx, store.Change{
		Put: []store.Entry{{Key: store.KeyGroupAuthority, Value: kept}, put, {Key: store.KeyEpoch, Value: value}}, Who: "headgate", Why: "group of machines",
	})
	return err
}

// Joined is the result of Join.
type Joined struct {
	// Leader and Address are the machine that is followed.
	Leader, Address string
	// Backup is the folder with what the state directory had, "" if it had nothing.
	Backup string
}

// Join makes the machine with a state directory a member of the group that has issued a
// token. What the directory has is moved to a folder in it; nothing of it is merged. No
// headgate must use the directory.
func Join(ctx context.Context, dir, text, name, address string) (*Joined, error) {
	t, err := readToken(text)
	if err == nil && t.Database {
		err = errors.New("the token is for machines that share a database")
	}
	if err != nil {
		return nil, err
	}
	if err := CheckName(name); err != nil {
		return nil, err
	}
	if address, err = CheckAddress(address); err != nil {
		return nil, err
	}
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	rs := &joinResponse{}
	if err := requestJoin(ctx, t, &joinRequest{Secret: t.Secret, Name: name, Address: address, Key: public, Proof: ed25519.Sign(private, t.Secret)}, rs); err != nil {
		return nil, err
	}
	id := &Identity{Group: t.Group, Name: name, Authority: rs.Authority, Certificate: rs.Certificate, Key: private.Seed(), Peer: t.Leader}
	if _, err := id.clientConfig(nil); err != nil {
		return nil, fmt.Errorf("read the credential: %w", err)
	}
	backup, err := setAside(dir)
	if err != nil {
		return nil, fmt.Errorf("set the state of this machine aside: %w", err)
	}
	settings := Settings{Address: address, Follow: t.Address}
	if err := errors.Join(settings.save(dir), id.save(dir)); err != nil {
		return nil, err
	}
	return &Joined{Leader: rs.Leader, Address: t.Address, Backup: backup}, nil
}

// requestJoin sends the request of a machine that joins, and reads the response into out.
func requestJoin(ctx context.Context, t *token, rq *joinRequest, out any) error {
	body, err := json.Marshal(rq)
	if err != nil {
		return err
	}
	transport := &http.Transport{TLSClientConfig: pinnedConfig(t.Group, t.Pin, t.Leader), TLSHandshakeTimeout: callTimeout * 3, ResponseHeaderTimeout: callTimeout * 5}
	defer transport.CloseIdleConnections()
	ctx, stop := context.WithTimeout(ctx, callTimeout*10)
	defer stop()
	if err := post(ctx, transport, t.Address+pathJoin, bytes.NewReader(body), out); err != nil {
		return fmt.Errorf("join at %s: %w", t.Address, err)
	}
	return nil
}

// setAside moves everything in a state directory to a folder in it.
func setAside(dir string) (string, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	backup := filepath.Join(dir, "before-join-"+time.Now().UTC().Format("20060102T150405.000"))
	moved := false
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "before-join-") {
			continue
		}
		if !moved {
			if err := os.Mkdir(backup, 0o700); err != nil {
				return "", err
			}
			moved = true
		}
		if err := os.Rename(filepath.Join(dir, e.Name()), filepath.Join(backup, e.Name())); err != nil {
			return "", err
		}
	}
	if !moved {
		return "", nil
	}
	return backup, nil
}

// ReadToken reads the text of a token from a file or standard input.
func ReadToken(r io.Reader) (string, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxToken+1))
	if err != nil {
		return "", fmt.Errorf("read the token: %w", err)
	}
	if _, err := readToken(string(data)); err != nil {
		return "", err
	}
	return strings.TrimSpace(string(data)), nil
}
