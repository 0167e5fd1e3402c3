package operator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"headgate/internal/store"
	"headgate/internal/store/memory"
	"headgate/internal/testhouse"
)

// shared is a store of several machines that can be away, and whose answers can be lost.
type shared struct {
	*memory.Store
	away, mute bool
}

func (s *shared) Commit(ctx context.Context, c store.Change) (store.Revision, error) {
	if s.away {
		return 0, fmt.Errorf("%w: connection refused", store.ErrUnavailable)
	}
	at, err := s.Store.Commit(ctx, c)
	if s.mute {
		return 0, store.ErrUnknownOutcome
	}
	return at, err
}

// openShared returns the operators of one machine of several.
func openShared(t *testing.T) (*Operators, *shared) {
	t.Helper()
	st := &shared{Store: memory.NewAhead(-3 * time.Hour)}
	return machine(t, st, filepath.Join(t.TempDir(), "waiting")), st
}

func machine(t *testing.T, st store.Store, journal string) *Operators {
	t.Helper()
	return New(Options{Store: st, Events: &heard{}, Log: slog.New(slog.DiscardHandler), Node: "a", Journal: journal})
}

// audited returns the actions in the audit log from the oldest, with their objects.
func audited(t *testing.T, o *Operators) (all []string) {
	t.Helper()
	page, _, err := o.AuditPage(t.Context(), AuditQuery{}, 0, store.MaxPage)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range slices.Backward(page) {
		all = append(all, strings.TrimSpace(a.Action+" "+a.Object))
	}
	return all
}

func TestAwayStoreStartsASessionOfThisMachine(t *testing.T) {
	o, st := openShared(t)
	make1(t, o, "ann", Admin)
	before := signIn(t, o, "ann")
	st.away = true
	if _, err := o.BySession(t.Context(), before.Cookie, before.Header, home); err != nil {
		t.Errorf("a session that is there does not go on: %v", err)
	}
	c := signIn(t, o, "ann")
	if d := c.Expires.Sub(store.Time(o.store)); d > time.Hour || d < 59*time.Minute {
		t.Errorf("the session ends in %v, want an hour", d)
	}
	who, err := o.BySession(t.Context(), c.Cookie, c.Header, home)
	if err != nil || who.Name != "ann" || who.Role != Admin {
		t.Fatalf("got %+v, %v", who, err)
	}
	if _, err := o.BySession(t.Context(), c.Cookie, before.Header, home); code(err) != CodeSignedOut {
		t.Errorf("with a wrong second secret: %v", err)
	}
	if other := machine(t, st, ""); code(func() error { _, err := other.BySession(t.Context(), c.Cookie, c.Header, home); return err }()) != CodeSignedOut {
		t.Error("the session is valid on another machine")
	}
	if all, err := o.Sessions(t.Context(), "ann"); err != nil || len(all) != 2 {
		t.Errorf("%d sessions are listed, %v", len(all), err)
	}
	if _, err := o.CreateUser(t.Context(), who, NewUser{Name: "bob", Role: Viewer, Password: good}, false); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("a change while the store is away: %v", err)
	}
	if _, err := o.SignIn(t.Context(), here, SignIn{User: "ann", Password: "wrong horse battery"}); code(err) != CodeSignedOut {
		t.Errorf("a wrong password: %v", err)
	}
	st.away = false
	disabled := true
	if _, err := o.ChangeUser(t.Context(), root, "ann", Any, UserChange{Disabled: &disabled}, false); err == nil {
		t.Fatal("the last admin was disabled")
	}
	make1(t, o, "eve", Admin)
	if _, err := o.ChangeUser(t.Context(), root, "ann", Any, UserChange{Disabled: &disabled}, false); err != nil {
		t.Fatal(err)
	}
	if _, err := o.BySession(t.Context(), c.Cookie, c.Header, home); code(err) != CodeSignedOut {
		t.Errorf("the session of a user who was disabled: %v", err)
	}
}

func TestAwayStoreAcceptsNoCodeTwice(t *testing.T) {
	o, st := openShared(t)
	make1(t, o, "ann", Admin)
	e, err := o.BeginTOTP(t.Context(), root, "ann")
	if err != nil {
		t.Fatal(err)
	}
	recovery, err := o.FinishTOTP(t.Context(), root, "ann", testhouse.TOTP(t, e.Secret, store.Time(o.store).Add(-30*time.Second)))
	if err != nil {
		t.Fatal(err)
	}
	st.away = true
	in := SignIn{User: "ann", Password: good, Code: recovery[0]}
	if _, err := o.SignIn(t.Context(), here, in); code(err) != CodeStore {
		t.Errorf("a recovery code that cannot be used up: %v", err)
	}
	in.Code = testhouse.TOTP(t, e.Secret, store.Time(o.store))
	if _, err := o.SignIn(t.Context(), here, in); err != nil {
		t.Fatal(err)
	}
	for _, away := range []bool{true, false} {
		st.away = away
		if _, err := o.SignIn(t.Context(), here, in); code(err) != CodeSignedOut {
			t.Errorf("away %v, the code again: %v", away, err)
		}
	}
}

func TestSessionsOfThisMachineAreBounded(t *testing.T) {
	d := newDetached(time.Now)
	for i := range 3 * maxDetached {
		at := time.Now().Add(time.Duration(i) * time.Second)
		d.add(fmt.Sprintf("session/%05d", i), session{Session: Session{Created: at, Expires: at.Add(time.Hour)}})
	}
	if keys := d.keys(); len(keys) != maxDetached || keys[0] != "session/00200" {
		t.Errorf("%d sessions from %s on", len(keys), keys[0])
	}
}

func TestAuditWaitsInAFileAndIsSentOnceInOrder(t *testing.T) {
	o, st := openShared(t)
	make1(t, o, "ann", Admin)
	st.away = true
	for i := range 3 {
		if err := o.Note(t.Context(), root, "backup.create", fmt.Sprint(i), ""); err != nil {
			t.Fatal(err)
		}
	}
	c := signIn(t, o, "ann")
	if err := o.SignOut(t.Context(), Identity{Name: "ann"}, c.Cookie); err != nil {
		t.Fatal(err)
	}
	o.sendWaiting(t.Context())
	if info, err := os.Stat(o.journal.name); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("the file: %v %v", info, err)
	}
	// The process is killed in the middle of a line, and then after the store has a record
	// whose answer was lost.
	f, err := os.OpenFile(o.journal.name, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	f.WriteString(`{"id":"half`)
	f.Close()
	o = machine(t, st, o.journal.name)
	st.away, st.mute = false, true
	o.sendWaiting(t.Context())
	o = machine(t, st, o.journal.name)
	st.mute = false
	if err := o.Note(t.Context(), root, "backup.create", "3", ""); err != nil { // after those that wait
		t.Fatal(err)
	}
	o.sendWaiting(t.Context())
	want := []string{"user.create user ann", "backup.create 0", "backup.create 1", "backup.create 2", "session.sign_in user ann", "session.sign_out user ann", "backup.create 3"}
	if got := audited(t, o); !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
	if _, err := os.Stat(o.journal.name); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file is left: %v", err)
	}
	if err := o.Note(t.Context(), root, "backup.create", "4", ""); err != nil {
		t.Fatal(err)
	}
	if got := audited(t, o); got[len(got)-1] != "backup.create 4" {
		t.Errorf("at last %q", got[len(got)-1])
	}
}

func TestSignInWhoseAnswerWasLostIsAuditedOnce(t *testing.T) {
	o, st := openShared(t)
	make1(t, o, "ann", Admin)
	st.mute = true
	c := signIn(t, o, "ann")
	if _, err := o.BySession(t.Context(), c.Cookie, c.Header, home); err != nil {
		t.Error(err)
	}
	st.mute = false
	o.sendWaiting(t.Context())
	if got, want := audited(t, o), []string{"user.create user ann", "session.sign_in user ann"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestAuditThatWaitsIsBoundedAndNamesWhatWasDropped(t *testing.T) {
	o, st := openShared(t)
	st.away = true
	for i := range maxWaiting + 5 {
		if err := o.Note(t.Context(), root, "backup.create", fmt.Sprint(i), ""); err != nil {
			t.Fatal(err)
		}
	}
	if info, err := os.Stat(o.journal.name); err != nil || info.Size() > maxJournal+1024 {
		t.Errorf("the file has %d bytes, %v", info.Size(), err)
	}
	o = machine(t, st, o.journal.name) // at least the last power of two is known after a restart
	st.away = false
	o.sendWaiting(t.Context())
	o.sendWaiting(t.Context())
	page, err := st.Page(t.Context(), store.StreamAudit, 0, store.MaxPage)
	if err != nil || len(page) != store.MaxPage {
		t.Fatal(len(page), err)
	}
	a := Audited{}
	if err := json.Unmarshal(page[0].Data, &a); err != nil || a.Action != "audit.dropped" || !strings.Contains(a.Why, "at least 4 records") {
		t.Errorf("at last %+v", a)
	}
	if json.Unmarshal(page[1].Data, &a) != nil || a.Object != fmt.Sprint(maxWaiting-1) {
		t.Errorf("before that %+v", a)
	}
	if page[0].Sequence != maxWaiting+1 {
		t.Errorf("%d records; want %d", page[0].Sequence, maxWaiting+1)
	}
}

// A single machine whose disk is full has no other place for its audit log.
func TestSingleMachineSignsNobodyInWithoutAudit(t *testing.T) {
	o, st, _ := open(t)
	make1(t, o, "ann", Admin)
	o.store = full{st}
	if _, err := o.SignIn(t.Context(), here, SignIn{User: "ann", Password: good}); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("got %v", err)
	}
	// Neither has one of several whose file cannot be written.
	o.shared, o.journal = true, newJournal(filepath.Join(t.TempDir(), "none", "waiting"), o.log)
	if _, err := o.SignIn(t.Context(), here, SignIn{User: "ann", Password: good}); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("without a file: %v", err)
	}
}
