package store

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestCheckKey(t *testing.T) {
	for _, key := range []string{"head", "certificate/*.example.com", "blob/00/1", strings.Repeat("k", MaxKey)} {
		if err := CheckKey(key); err != nil {
			t.Errorf("CheckKey(%q) = %v", key, err)
		}
	}
	for _, key := range []string{"", "/", "a/", "/a", "a//b", "a/../b", "a/.", "a b", "a\\b", "a\x00", "ü", strings.Repeat("k", MaxKey+1)} {
		if err := CheckKey(key); err == nil {
			t.Errorf("CheckKey(%q) = nil, want an error", key)
		}
	}
}

func TestWhatNobodyGuardsIsNotSealed(t *testing.T) {
	for key, want := range map[string]bool{
		KeyHead: false, KeyConfirm: false, PrefixRevision + "00000001": false, PrefixCDN + "fastly": false,
		KeySticky: true, PrefixCertificate + "a": true, PrefixUser + "a": true, PrefixToken + "a": true,
		PrefixSession + "a": true, PrefixWebhook + "a": true, PrefixAccount + "a": true, "new/kind": true, "headmaster": true,
	} {
		if got := Sealed(key); got != want {
			t.Errorf("Sealed(%q) = %v, want %v", key, got, want)
		}
	}
}

func TestChangesAreBounded(t *testing.T) {
	large := Entry{Key: "a", Value: make([]byte, MaxChange)}
	for name, c := range map[string]Change{
		"size":       {Put: []Entry{large}},
		"operations": {If: make([]Condition, MaxOperations), Delete: []string{"a"}},
		"twice":      {Put: []Entry{{Key: "a"}}, Delete: []string{"a"}},
		"key":        {Delete: []string{""}},
		"condition":  {If: []Condition{{}}, Delete: []string{"a"}},
		"stream":     {Append: []Record{{Stream: ""}}},
	} {
		if c.Check() == nil {
			t.Errorf("%s: Check() = nil, want an error", name)
		}
	}
	if c := (Change{Put: []Entry{{Key: "a", Value: make([]byte, MaxChange-1)}}}); c.Check() != nil {
		t.Error("the largest change is refused:", c.Check())
	}
}

// oneLease is an engine that renews as often as it is told to.
type oneLease struct{ err error }

func (o *oneLease) RenewLease(context.Context, string, uint64, time.Duration) error { return o.err }
func (o *oneLease) ReleaseLease(context.Context, string, uint64) error              { return o.err }

func isLost(l *Lease) bool {
	select {
	case <-l.Lost():
		return true
	default:
		return false
	}
}

func TestALeaseIsLostBeforeOthersCanHaveIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := &oneLease{}
		l := NewLease(engine, "acme", 1, 30*time.Second, time.Now())
		for range 5 {
			time.Sleep(15 * time.Second)
			if err := l.Renew(t.Context()); err != nil || isLost(l) {
				t.Fatalf("renewed in time: %v, lost %v", err, isLost(l))
			}
		}
		time.Sleep(20*time.Second - 1)
		synctest.Wait()
		if isLost(l) {
			t.Error("lost before two thirds of its time")
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if !isLost(l) {
			t.Error("not lost after two thirds of its time")
		}
		if err := l.Renew(t.Context()); !errors.Is(err, ErrFenced) {
			t.Errorf("a lost lease renews: %v", err)
		}
	})
}

func TestALeaseThatIsRefusedIsLost(t *testing.T) {
	engine := &oneLease{err: ErrUnavailable}
	l := NewLease(engine, "acme", 1, time.Hour, time.Now())
	if err := l.Renew(t.Context()); !errors.Is(err, ErrUnavailable) || isLost(l) {
		t.Errorf("engine away: got %v, lost %v; want it kept", err, isLost(l))
	}
	engine.err = ErrFenced
	if err := l.Renew(t.Context()); !errors.Is(err, ErrFenced) || !isLost(l) {
		t.Errorf("refused: got %v, lost %v", err, isLost(l))
	}
}
