package pair

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"headgate/internal/store"
	"headgate/internal/store/local"
	"headgate/internal/testhouse"
)

// patience is how long a test waits for what has to happen.
const patience = 30 * time.Second

// machine is a member with its management port.
type machine struct {
	*Store
	dir     string
	address string
	at      atomic.Pointer[Store]
	passed  atomic.Int64 // by which the clock of the state directory is ahead
	server  *httptest.Server
	log     testhouse.Log
}

// listen opens the management port of a machine, whose store may not exist yet.
func listen(t *testing.T) *machine {
	t.Helper()
	m := &machine{dir: t.TempDir()}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, rq *http.Request) {
		if s := m.at.Load(); s != nil && s.Serves(rq.TLS) {
			s.ServeHTTP(w, rq)
			return
		}
		http.Error(w, "the console", http.StatusOK)
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.TLS = &tls.Config{GetConfigForClient: func(client *tls.ClientHelloInfo) (*tls.Config, error) {
		if s := m.at.Load(); s != nil {
			if c := s.Config(client); c != nil {
				return c, nil
			}
		}
		return nil, nil
	}}
	server.StartTLS()
	t.Cleanup(server.Close)
	m.address, m.server = server.URL, server
	return m
}

func (m *machine) files(t *testing.T) *local.Store {
	t.Helper()
	files, err := local.Open(local.Options{Dir: m.dir, Clock: func() time.Time { return time.Now().Add(time.Duration(m.passed.Load())) }})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// open runs the machine.
func (m *machine) open(t *testing.T) {
	t.Helper()
	id, err := LoadIdentity(m.dir)
	if err != nil {
		t.Fatal(err)
	}
	settings, err := LoadSettings(m.dir)
	if err != nil {
		t.Fatal(err)
	}
	files := m.files(t)
	s, err := Open(t.Context(), Options{Files: files, Identity: id, Settings: settings, Log: slog.New(slog.NewTextHandler(&m.log, nil))})
	if err != nil {
		files.Close()
		t.Fatal(err)
	}
	m.Store = s
	m.at.Store(s)
	t.Cleanup(func() { m.close(t) })
}

func (m *machine) close(t *testing.T) {
	t.Helper()
	if m.Store == nil {
		return
	}
	m.at.Store(nil)
	if err := m.Store.Close(); err != nil {
		t.Error(err)
	}
	m.server.CloseClientConnections() // as when the process ends
	m.Store = nil
}

// newLeader returns a machine that leads a group alone.
func newLeader(t *testing.T) *machine {
	t.Helper()
	m := listen(t)
	files := m.files(t)
	if err := Init(t.Context(), files, "a", m.address); err != nil {
		t.Fatal(err)
	}
	if err := files.Close(); err != nil {
		t.Fatal(err)
	}
	m.open(t)
	return m
}

// newPair returns a leader and its follower.
func newPair(t *testing.T) (a, b *machine) {
	t.Helper()
	a, b = newLeader(t), listen(t)
	if _, err := Join(t.Context(), b.dir, a.invite(t, "b"), "b", b.address); err != nil {
		t.Fatal(err)
	}
	b.open(t)
	b.await(t, "it follows", func(st State) bool { return st.Role == Follower && st.Connected })
	return a, b
}

func (m *machine) invite(t *testing.T, name string) string {
	t.Helper()
	inv, err := m.Invite(t.Context(), name, "root", nil)
	if err != nil {
		t.Fatal(err)
	}
	return inv.Token
}

func (m *machine) await(t *testing.T, what string, is func(State) bool) {
	t.Helper()
	eventually(t, what, func() bool { return is(m.State()) })
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !is(); {
		if time.Now().After(end) {
			t.Fatalf("not in %v: %s", patience, what)
		}
		wait, stop := context.WithTimeout(t.Context(), 5*time.Millisecond)
		<-wait.Done()
		stop()
	}
}

func put(key, value string) store.Change {
	return store.Change{Put: []store.Entry{{Key: key, Value: []byte(value)}}, Append: []store.Record{{Stream: store.StreamAudit, Data: []byte(`{"who":"ann","action":"user.create","object":"` + key + `"}`)}}}
}

func (m *machine) commit(t *testing.T, key, value string) store.Revision {
	t.Helper()
	at, err := m.Commit(t.Context(), put(key, value))
	if err != nil {
		t.Fatalf("commit %s: %v", key, err)
	}
	return at
}

func (m *machine) has(t *testing.T, key, want string) {
	t.Helper()
	eventually(t, key+" is "+want, func() bool {
		e, err := m.Get(t.Context(), key)
		return err == nil && string(e.Value) == want || want == "" && errors.Is(err, store.ErrNotFound)
	})
}

func TestATokenIsValidOnceAndForAnHour(t *testing.T) {
	t.Parallel()
	a := newLeader(t)
	old := a.invite(t, "")
	a.passed.Store(int64(TokenLife + time.Second))
	if _, err := Join(t.Context(), t.TempDir(), old, "b", "https://127.0.0.1:1"); !errors.Is(err, ErrToken) {
		t.Errorf("an expired token: got %v, want %v", err, ErrToken)
	}
	token := a.invite(t, "")
	if _, err := Join(t.Context(), t.TempDir(), token, "b", "https://127.0.0.1:1"); err != nil {
		t.Fatal(err)
	}
	if _, err := Join(t.Context(), t.TempDir(), token, "c", "https://127.0.0.1:1"); !errors.Is(err, ErrToken) {
		t.Errorf("a used token: got %v, want %v", err, ErrToken)
	}
}

func TestAJoinerDoesNotChooseAnothersName(t *testing.T) {
	t.Parallel()
	a := newLeader(t)
	for token, name := range map[string]string{a.invite(t, "b"): "c", a.invite(t, ""): "a", a.invite(t, "d"): "D/../a"} {
		if _, err := Join(t.Context(), t.TempDir(), token, name, "https://127.0.0.1:1"); !errors.Is(err, ErrName) {
			t.Errorf("the name %q: got %v, want %v", name, err, ErrName)
		}
	}
	first, second := a.invite(t, "b"), a.invite(t, "b")
	if _, err := Join(t.Context(), t.TempDir(), first, "b", "https://127.0.0.1:1"); err != nil {
		t.Fatal(err)
	}
	if _, err := Join(t.Context(), t.TempDir(), second, "b", "https://127.0.0.1:1"); !errors.Is(err, ErrName) {
		t.Errorf("another machine of the same name: got %v, want %v", err, ErrName)
	}
}

// A machine in the middle that has a certificate of its own gets no secret.
func TestAJoinerRefusesAnotherAuthority(t *testing.T) {
	t.Parallel()
	a := newLeader(t)
	text := a.invite(t, "b")
	real, err := readToken(text)
	if err != nil {
		t.Fatal(err)
	}
	authority, err := newAuthority()
	if err != nil {
		t.Fatal(err)
	}
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	authority.Group = real.Group
	der, err := authority.issue("a", public, nil)
	if err != nil {
		t.Fatal(err)
	}
	var requests atomic.Int64
	middle := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests.Add(1) }))
	middle.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der, authority.Certificate}, PrivateKey: private}}}
	middle.StartTLS()
	defer middle.Close()
	real.Address = middle.URL
	if _, err := Join(t.Context(), t.TempDir(), real.text(), "b", "https://127.0.0.1:1"); err == nil || !strings.Contains(err.Error(), "intercepted") {
		t.Errorf("a machine in the middle: got %v", err)
	}
	// With the real authority beside a leaf that it has not issued.
	middle.TLS.Certificates[0].Certificate[1] = a.id.Authority
	if _, err := Join(t.Context(), t.TempDir(), real.text(), "b", "https://127.0.0.1:1"); err == nil {
		t.Error("a leaf of another authority was accepted")
	}
	if n := requests.Load(); n > 0 {
		t.Errorf("the machine in the middle got %d requests", n)
	}
}

func TestOnlyMembersAreAnswered(t *testing.T) {
	t.Parallel()
	a, b := newPair(t)
	a.commit(t, store.PrefixUser+"ann", "secret")
	call := func(id *Identity) error {
		p, err := newPeer(id, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer p.close()
		var out []store.Entry
		return p.call(t.Context(), a.address, pathFetch, []string{store.PrefixUser + "ann"}, &out)
	}
	if err := call(b.id); err != nil {
		t.Fatalf("a member: %v", err)
	}
	stranger, err := newAuthority()
	if err != nil {
		t.Fatal(err)
	}
	stranger.Group = a.id.Group
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := stranger.issue("b", public, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := call(&Identity{Group: a.id.Group, Name: "b", Authority: a.id.Authority, Certificate: der, Key: private.Seed()}); err == nil {
		t.Error("a stranger's certificate was accepted")
	}
	none := &http.Transport{TLSClientConfig: pinnedConfig(a.id.Group, mustPin(t, a.id.Authority), mustPin(t, a.id.Certificate))}
	defer none.CloseIdleConnections()
	if err := post(t.Context(), none, a.address+pathFetch, strings.NewReader(`["user/ann"]`), nil); !errors.Is(err, ErrRemoved) {
		t.Errorf("no certificate: got %v, want %v", err, ErrRemoved)
	}
	if err := a.Remove(t.Context(), "b", "root", nil); err != nil {
		t.Fatal(err)
	}
	if err := call(b.id); !errors.Is(err, ErrRemoved) {
		t.Errorf("a revoked credential: got %v, want %v", err, ErrRemoved)
	}
	b.await(t, "the stream of a revoked credential ends", func(st State) bool { return !st.Connected && strings.Contains(st.Problem, "revoked") })
	// The name is free again, and the old credential does not come back with it.
	if _, err := Join(t.Context(), t.TempDir(), a.invite(t, "b"), "b", "https://127.0.0.1:1"); err != nil {
		t.Fatal(err)
	}
	if err := call(b.id); !errors.Is(err, ErrRemoved) {
		t.Errorf("the credential of the machine before, under the same name: got %v, want %v", err, ErrRemoved)
	}
}

// mustPin returns the pin of a certificate.
func mustPin(t *testing.T, der []byte) string {
	t.Helper()
	c, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return pinOf(c)
}

// A follower writes what traffic causes and nothing else, and not in the name of another.
func TestTheLeaderAcceptsOnlyWhatTrafficCauses(t *testing.T) {
	t.Parallel()
	a, b := newPair(t)
	a.commit(t, store.PrefixGateCode+"1", "code")
	b.has(t, store.PrefixGateCode+"1", "code")
	e, err := b.Get(t.Context(), store.PrefixGateCode+"1")
	if err != nil {
		t.Fatal(err)
	}
	use := store.Change{If: []store.Condition{{Key: e.Key, Revision: e.Revision}}, Delete: []string{e.Key}}
	if _, err := b.Commit(t.Context(), use); err != nil {
		t.Fatalf("the use of a code on the follower: %v", err)
	}
	if _, err := a.Get(t.Context(), e.Key); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("the leader has the used code: %v", err)
	}
	if _, err := a.Commit(t.Context(), use); !errors.As(err, new(*store.Conflict)) {
		t.Errorf("the second use of a code: got %v, want a conflict", err)
	}
	for _, key := range []string{store.KeyHead, store.PrefixUser + "eve", store.PrefixToken + "t", store.PrefixNode + "a", store.KeyEpoch, store.PrefixGroupMember + "c", store.PrefixCertificate + "x", store.PrefixDiverged + "1-a"} {
		var leader *NotLeader
		if _, err := b.Commit(t.Context(), put(key, "x")); !errors.As(err, &leader) || leader.Address != a.address {
			t.Errorf("%s on the follower: got %v, want the address %s", key, err, a.address)
		}
		// A follower that does not refuse it itself.
		var at store.Revision
		c := put(key, "x")
		if err := b.peer.call(t.Context(), a.address, pathCommit, &c, &at); err == nil {
			t.Errorf("the leader has accepted %s from the follower", key)
		}
	}
	if _, err := b.Acquire(t.Context(), "acme", time.Minute); !errors.As(err, new(*store.Held)) {
		t.Errorf("a lease on the follower: got %v, want one that is held", err)
	}
}

func TestAFollowerHasWhatTheLeaderCommits(t *testing.T) {
	t.Parallel()
	a, b := newPair(t)
	for i := range 50 {
		a.commit(t, store.PrefixUser+"ann", strings.Repeat("x", i))
	}
	a.commit(t, store.PrefixUser+"ann", "last")
	b.has(t, store.PrefixUser+"ann", "last")
	want, err := a.Page(t.Context(), store.StreamAudit, 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	got, err := b.Page(t.Context(), store.StreamAudit, 0, 100)
	if err != nil || len(got) != len(want) || got[0].Sequence != want[0].Sequence {
		t.Errorf("the audit of the follower has %d records, %v; want %d", len(got), err, len(want))
	}
	// The log of the leader ends at its restart: the follower compares instead.
	b.close(t)
	a.commit(t, store.PrefixUser+"bob", "new")
	if _, err := a.Commit(t.Context(), store.Change{Delete: []string{store.PrefixUser + "ann"}}); err != nil {
		t.Fatal(err)
	}
	a.close(t)
	b.open(t) // it starts without the leader
	b.has(t, store.PrefixUser+"ann", "last")
	a.open(t)
	b.has(t, store.PrefixUser+"bob", "new")
	b.has(t, store.PrefixUser+"ann", "")
	if text := b.log.String(); !strings.Contains(text, "the leader is followed") || strings.Contains(text, "shared store") {
		t.Errorf("the log of a follower does not call the leader so: %s", text)
	}
}

// A leader that is set back to an older copy has another history: the follower takes it, and
// keeps what it had.
func TestAFollowerKeepsWhatARestoredLeaderDoesNotHave(t *testing.T) {
	t.Parallel()
	a, b := newPair(t)
	a.commit(t, store.PrefixUser+"ann", "1")
	b.has(t, store.PrefixUser+"ann", "1")
	a.close(t)
	backup := t.TempDir()
	if err := os.CopyFS(backup, os.DirFS(a.dir)); err != nil {
		t.Fatal(err)
	}
	a.open(t)
	a.commit(t, store.PrefixUser+"lost", "1")
	b.has(t, store.PrefixUser+"lost", "1")
	a.close(t)
	a.dir = backup
	a.open(t)
	for range 5 {
		a.commit(t, store.PrefixUser+"ann", "2")
	}
	b.has(t, store.PrefixUser+"ann", "2")
	b.has(t, store.PrefixUser+"lost", "")
	if kept, err := filepath.Glob(filepath.Join(b.dir, divergedName, "*", "state.tar.gz")); err != nil || len(kept) != 1 {
		t.Errorf("the follower kept %v, %v", kept, err)
	}
}

func TestPromotionLosesNothingAndOnlyOneLeads(t *testing.T) {
	t.Parallel()
	a, b := newPair(t)
	a.commit(t, store.PrefixUser+"ann", "1")
	if err := b.Promote(t.Context(), true, "root", nil); !errors.Is(err, ErrPromote) {
		t.Errorf("alone beside a leader that answers: got %v, want %v", err, ErrPromote)
	}
	var acked atomic.Int64
	ctx, stop := context.WithCancel(t.Context())
	var writer sync.WaitGroup
	writer.Go(func() {
		for i := int64(1); ctx.Err() == nil; i++ {
			if _, err := a.Commit(ctx, put(store.PrefixUser+"count", strconv.FormatInt(i, 10))); err == nil {
				acked.Store(i)
			}
		}
	})
	eventually(t, "changes are made", func() bool { return acked.Load() > 20 })
	if err := b.Promote(t.Context(), false, "root", nil); err != nil {
		t.Fatal(err)
	}
	stop()
	writer.Wait()
	e, err := b.Get(t.Context(), store.PrefixUser+"count")
	if n, _ := strconv.ParseInt(string(e.Value), 10, 64); err != nil || n < acked.Load() {
		t.Errorf("the new leader has change %s, %v; %d were acknowledged", e.Value, err, acked.Load())
	}
	a.await(t, "it follows", func(st State) bool { return st.Role == Follower && st.Connected && st.Leader == "b" })
	if d := a.State().Diverged; d != nil {
		t.Errorf("a leader that handed over has changes of its own: %v", d.Changes)
	}
	b.commit(t, store.PrefixUser+"ann", "2")
	a.has(t, store.PrefixUser+"ann", "2")
}

func TestALeaderThatStartsAsksTheOther(t *testing.T) {
	t.Parallel()
	a, b := newPair(t)
	a.commit(t, store.PrefixUser+"ann", "1")
	b.has(t, store.PrefixUser+"ann", "1")
	a.close(t)
	b.await(t, "the leader is away", func(st State) bool { return !st.Connected })
	b.close(t)
	a.open(t)
	if st := a.State(); st.Role != Waiting {
		t.Fatalf("a leader that has not reached the other is %s", st.Role)
	}
	if _, err := a.Commit(t.Context(), put(store.PrefixUser+"ann", "2")); !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), "promote --alone") {
		t.Errorf("a change before the other is reached: %v", err)
	}
	b.open(t)
	a.await(t, "it leads when the other answers", func(st State) bool { return st.Role == Leader })
	a.commit(t, store.PrefixUser+"ann", "2")
	a.close(t)
	b.await(t, "the leader is away", func(st State) bool { return !st.Connected })
	if err := b.Promote(t.Context(), false, "root", nil); !errors.Is(err, ErrPromote) {
		t.Errorf("without the leader and without alone: got %v, want %v", err, ErrPromote)
	}
	if err := b.Promote(t.Context(), true, "root", nil); err != nil {
		t.Fatal(err)
	}
	b.commit(t, store.PrefixUser+"ann", "3")
	a.open(t)
	a.await(t, "it yields", func(st State) bool { return st.Role == Follower })
	a.has(t, store.PrefixUser+"ann", "3")
}

func TestNoEpochIsBelievedThatIsNotSigned(t *testing.T) {
	t.Parallel()
	a, b := newPair(t)
	own, err := b.own(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for what, epoch := range map[string]Epoch{
		"a number that was raised":      {Number: 99, Node: "b", Certificate: b.id.Certificate, Signature: own.Epoch.Signature},
		"the name of another":           func() Epoch { e := b.id.newEpoch(99, store.Position{}, 0); e.Node = "z"; return e }(),
		"a signature of another member": func() Epoch { e := a.id.newEpoch(99, store.Position{}, 0); e.Certificate = b.id.Certificate; return e }(),
	} {
		if err := a.id.check(&epoch); err == nil {
			t.Errorf("%s is believed", what)
		}
		in := *own
		in.Epoch = epoch
		_ = b.peer.call(t.Context(), a.address, pathHello, &in, nil)
		if r := a.Role(); r != Leader {
			t.Fatalf("%s: the leader is %s now", what, r)
		}
	}
}

func TestThereIsNoFollowerOfAFollower(t *testing.T) {
	t.Parallel()
	_, b := newPair(t)
	p, err := newPeer(b.id, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	if err := p.watch(t.Context(), b.address, store.Position{}, nil, func(*frame) error { return nil }); !errors.Is(err, errNotLeader) {
		t.Errorf("a stream of a follower: got %v, want %v", err, errNotLeader)
	}
}

func TestTheLeaderAnswersForUnknownTokensOnce(t *testing.T) {
	t.Parallel()
	a, b := newPair(t)
	a.commit(t, store.PrefixChallenge+"tok_EN", "answer")
	if got, ok := b.Challenge("tok_EN"); !ok || got != "answer" {
		t.Errorf("got %q, %t; want the leader's answer", got, ok)
	}
	for _, token := range []string{"none", "../user/ann", "alpn/x", ""} {
		if got, ok := b.Challenge(token); ok {
			t.Errorf("%q has the answer %q", token, got)
		}
	}
	if _, ok := a.Challenge("none"); ok {
		t.Error("the leader asks another machine")
	}
}

func TestSettings(t *testing.T) {
	dir := t.TempDir()
	for text, want := range map[string]Settings{
		"":                         {},
		"follow: https://a:9080\n": {Follow: "https://a:9080"},
		"address: https://[::1]:1/\nfollow: {address: \"https://a:9080\", sync: true}\n": {Address: "https://[::1]:1", Follow: "https://a:9080", Sync: true},
	} {
		if err := os.WriteFile(filepath.Join(dir, SettingsName), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := LoadSettings(dir); err != nil || got != want {
			t.Errorf("%q: got %+v, %v; want %+v", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"follow: http://a:9080\n": "node.yaml:1:", "follow:\n  sink: true\n": ":2: unknown field follow.sink", "a: b\n": ":1: unknown field a", "- x\n": ":1: expected fields", "follow: {sync: yes}": "must be true or false",
	} {
		if err := os.WriteFile(filepath.Join(dir, SettingsName), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := LoadSettings(dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
}

func FuzzToken(f *testing.F) {
	good := token{Address: "https://192.0.2.7:9080", Group: "0011223344556677", Pin: strings.Repeat("a", 64), Leader: strings.Repeat("b", 64), Secret: make([]byte, 32)}
	f.Add(good.text())
	f.Add(tokenMark + base64.RawURLEncoding.EncodeToString([]byte(`{}`)))
	f.Add("hg_other")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := readToken(text)
		if err != nil {
			return
		}
		if again, err := readToken(got.text()); err != nil || again.Address != got.Address || again.Pin != got.Pin {
			t.Errorf("%q is not the same when it is read again: %v", text, err)
		}
	})
}
