package pair

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"headgate/internal/store"
)

// forge returns a credential that a machine issues to itself with the authority of its copy,
// in the name of another machine. Announced has the credential claim to be of a restored
// machine, with all that the copy knows.
func (m *machine) forge(t *testing.T, name string, announced bool) *Identity {
	t.Helper()
	e, err := m.Get(t.Context(), store.KeyGroupAuthority)
	if err != nil {
		t.Fatal(err)
	}
	a := &authority{}
	if err := json.Unmarshal(e.Value, a); err != nil {
		t.Fatal(err)
	}
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	var claim []*url.URL
	if announced {
		claim = a.announcements(name, public)
	}
	der, err := a.issue(name, public, claim)
	if err != nil {
		t.Fatal(err)
	}
	return &Identity{Group: a.Group, Name: name, Authority: a.Certificate, Certificate: der, Key: private.Seed()}
}

// impostor answers with a credential, and counts the requests that it gets.
func impostor(t *testing.T, id *Identity) (address string, requests *atomic.Int64) {
	t.Helper()
	config, err := id.serverConfig()
	if err != nil {
		t.Fatal(err)
	}
	requests = new(atomic.Int64)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests.Add(1) }))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.TLS = config
	server.TLS.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return config, nil }
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.URL, requests
}

// replaced returns a pair of a and c after the credential of b was revoked. B keeps the copy
// that it had, with the key of the authority.
func replaced(t *testing.T) (a, b, c *machine) {
	t.Helper()
	a, b = newPair(t)
	b.await(t, "it has the members", func(st State) bool { return st.Peer == "a" })
	if err := a.Remove(t.Context(), "b", "root", nil); err != nil {
		t.Fatal(err)
	}
	c = listen(t)
	if _, err := Join(t.Context(), c.dir, a.invite(t, "c"), "c", c.address); err != nil {
		t.Fatal(err)
	}
	c.open(t)
	c.await(t, "it follows", func(st State) bool { return st.Role == Follower && st.Connected })
	return a, b, c
}

// A revoked machine knows the key of the authority. On the path to the leader, it can still
// not pose as the leader: the follower knows the certificates of the members.
func TestARevokedMachineCannotPoseAsTheLeader(t *testing.T) {
	t.Parallel()
	_, b, c := replaced(t)
	for what, id := range map[string]*Identity{
		"its own credential":                      b.id,
		"one in the name of the leader":           b.forge(t, "a", false),
		"one of a restored leader":                b.forge(t, "a", true),
		"one in the name of the follower":         b.forge(t, "c", true),
		"one of a machine that is not in a group": b.forge(t, "d", true),
	} {
		address, requests := impostor(t, id)
		var out json.RawMessage
		err := c.peer.call(t.Context(), address, pathHello, struct{}{}, &out)
		if !errors.Is(err, errStranger) {
			t.Errorf("%s: got %v, want %v", what, err, errStranger)
		}
		if n := requests.Load(); n > 0 {
			t.Errorf("%s: the impostor got %d requests", what, n)
		}
	}
}

// The other direction: it is not answered as the follower.
func TestARevokedMachineCannotPoseAsTheFollower(t *testing.T) {
	t.Parallel()
	a, b, _ := replaced(t)
	for what, id := range map[string]*Identity{
		"its own credential":              b.id,
		"one in the name of the follower": b.forge(t, "c", false),
		"one of a restored follower":      b.forge(t, "c", true),
		"one in the name of the leader":   b.forge(t, "a", true),
	} {
		p, err := newPeer(id, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.close)
		var out []store.Entry
		if err := p.call(t.Context(), a.address, pathFetch, []string{store.KeyGroupAuthority}, &out); !errors.Is(err, ErrRemoved) {
			t.Errorf("%s: got %v, want %v", what, err, ErrRemoved)
		}
	}
}

// What revokes a machine contains the secret with which restored machines announce themselves from
// then on. It is not sent to the machine that is revoked, even if its stream is still open.
func TestARevokedMachineDoesNotGetTheNextSecret(t *testing.T) {
	t.Parallel()
	a, b := newPair(t)
	a.commit(t, "user/ann", "1")
	b.has(t, "user/ann", "1")
	authority, kept, err := a.authority(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	authority.revoke()
	value, err := json.Marshal(authority)
	if err != nil {
		t.Fatal(err)
	}
	// As Remove does, but the streams are not ended.
	if _, err := a.o.Files.Commit(t.Context(), store.Change{Put: []store.Entry{{Key: kept.Key, Value: value}}, Delete: []string{store.PrefixGroupMember + "b"}}); err != nil {
		t.Fatal(err)
	}
	b.await(t, "it is cut off", func(st State) bool { return !st.Connected })
	if has, err := b.Get(t.Context(), kept.Key); err != nil || bytes.Equal(has.Value, value) {
		t.Errorf("the machine that was revoked has the next secret, or none: %v", err)
	}
}

// A machine that joins has no copy yet, but its token names the certificate of the machine
// that has issued it.
func TestARevokedMachineCannotAnswerAJoiner(t *testing.T) {
	t.Parallel()
	a, b := newPair(t)
	if err := a.Remove(t.Context(), "b", "root", nil); err != nil {
		t.Fatal(err)
	}
	forged := b.forge(t, "a", true)
	address, requests := impostor(t, forged)
	text := a.invite(t, "c")
	token, err := readToken(text)
	if err != nil {
		t.Fatal(err)
	}
	token.Address = address
	dir := t.TempDir()
	if _, err := Join(t.Context(), dir, token.text(), "c", "https://127.0.0.1:1"); err == nil || requests.Load() > 0 {
		t.Errorf("the impostor was joined: %v, %d requests", err, requests.Load())
	}
	// It joins the leader, and meets the impostor at its first start.
	c := listen(t)
	if _, err := Join(t.Context(), c.dir, text, "c", c.address); err != nil {
		t.Fatal(err)
	}
	settings := Settings{Address: c.address, Follow: address}
	if err := settings.save(c.dir); err != nil {
		t.Fatal(err)
	}
	c.open(t)
	c.await(t, "the impostor is found", func(st State) bool { return strings.Contains(st.Problem, errStranger.Error()) })
	if n := requests.Load(); n > 0 {
		t.Errorf("the impostor got %d requests", n)
	}
}

// restore makes a copy of a machine's state directory without its credential, as a backup
// has, and makes that the machine's own with a new credential.
func (m *machine) restore(t *testing.T, from string) {
	t.Helper()
	m.dir = t.TempDir()
	if err := os.CopyFS(m.dir, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(m.dir, identityDir)); err != nil {
		t.Fatal(err)
	}
	files := m.files(t)
	defer files.Close()
	if err := Init(t.Context(), files, "a", m.address); err != nil {
		t.Fatal(err)
	}
}

func TestARestoredLeaderIsFollowedWithItsNewCertificate(t *testing.T) {
	t.Parallel()
	a, b := newPair(t)
	a.commit(t, store.PrefixUser+"ann", "1")
	b.has(t, store.PrefixUser+"ann", "1")
	a.close(t)
	backup := a.dir
	old, err := LoadIdentity(backup)
	if err != nil {
		t.Fatal(err)
	}
	a.restore(t, backup)
	a.restore(t, a.dir) // init is run again, while the follower has not seen the first
	a.open(t)
	a.await(t, "it leads", func(st State) bool { return st.Role == Leader })
	a.commit(t, store.PrefixUser+"ann", "2")
	b.has(t, store.PrefixUser+"ann", "2")
	// The credential of the machine before is not valid any more, in either direction.
	address, requests := impostor(t, old)
	if err := b.peer.call(t.Context(), address, pathHello, struct{}{}, nil); !errors.Is(err, errStranger) || requests.Load() > 0 {
		t.Errorf("the certificate before the restore: got %v, %d requests; want %v", err, requests.Load(), errStranger)
	}
}

// A leader that is restored after the other machine was promoted follows that one, which
// notes the new certificate.
func TestAPromotedMachineNotesTheNewCertificateOfARestoredOne(t *testing.T) {
	t.Parallel()
	a, b := newPair(t)
	a.close(t)
	backup := a.dir
	if err := b.Promote(t.Context(), true, "root", nil); err != nil {
		t.Fatal(err)
	}
	a.restore(t, backup)
	a.open(t)
	a.await(t, "it yields", func(st State) bool { return st.Role == Follower && st.Connected })
	b.commit(t, store.PrefixUser+"ann", "1")
	a.has(t, store.PrefixUser+"ann", "1")
	c, err := a.id.leaf()
	if err != nil {
		t.Fatal(err)
	}
	m, err := b.member(t.Context(), "a")
	if err != nil || m == nil || m.Key != pinOf(c) {
		t.Errorf("the member a is %+v, %v; want the key %s", m, err, pinOf(c))
	}
}

// A backup from before a revocation has what the revoked machine has: it is not believed.
func TestABackupFromBeforeARevocationAnnouncesNothing(t *testing.T) {
	t.Parallel()
	a, b := newPair(t)
	b.await(t, "it has the members", func(st State) bool { return st.Peer == "a" })
	backup := t.TempDir()
	a.close(t)
	if err := os.CopyFS(backup, os.DirFS(a.dir)); err != nil {
		t.Fatal(err)
	}
	a.open(t)
	a.await(t, "it leads", func(st State) bool { return st.Role == Leader })
	if err := a.Remove(t.Context(), "b", "root", nil); err != nil {
		t.Fatal(err)
	}
	c := listen(t)
	if _, err := Join(t.Context(), c.dir, a.invite(t, "c"), "c", c.address); err != nil {
		t.Fatal(err)
	}
	c.open(t)
	c.await(t, "it follows", func(st State) bool { return st.Connected })
	a.close(t)
	a.restore(t, backup)
	a.open(t)
	c.await(t, "it is a stranger", func(st State) bool { return strings.Contains(st.Problem, errStranger.Error()) })
}

func TestAnnouncementsAreLimited(t *testing.T) {
	a, err := newAuthority()
	if err != nil {
		t.Fatal(err)
	}
	first := slices.Clone(a.Announce[0])
	for range 3 * maxAnnounce {
		a.renew()
	}
	if len(a.Announce) != maxAnnounce {
		t.Errorf("%d secrets are kept, want %d", len(a.Announce), maxAnnounce)
	}
	if slices.ContainsFunc(a.Announce, func(s []byte) bool { return slices.Equal(s, first) }) {
		t.Error("the oldest secret is kept")
	}
	a.revoke()
	if len(a.Announce) != 1 {
		t.Errorf("%d secrets are kept after a revocation, want 1", len(a.Announce))
	}
}
