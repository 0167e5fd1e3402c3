package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"headgate/internal/store"
)

// keys is one key of each kind: an engine may keep them in different ways.
func keys() []string {
	return []string{
		store.KeyHead, store.KeyConfirm, store.KeySticky, store.PrefixRevision + "00000001",
		store.PrefixBlob + strings.Repeat("0a", 32) + "/0", store.PrefixCertificate + "*.Example.com",
		store.PrefixAccount + "letsencrypt", store.PrefixOrder + "shop", store.PrefixChallenge + "tok_EN-1",
		store.PrefixCDN + "fastly", store.PrefixUser + "anna@example.com", store.PrefixToken + "ci",
		store.PrefixSession + strings.Repeat("0b", 32), store.PrefixWebhook + "chat", store.PrefixNotice + "phone", store.PrefixNode + "a",
	}
}

func put(t *testing.T, s store.Store, key, value string) store.Revision {
	t.Helper()
	return commit(t, s, store.Change{Put: []store.Entry{{Key: key, Value: []byte(value)}}})
}

func commit(t *testing.T, s store.Store, c store.Change) store.Revision {
	t.Helper()
	at, err := s.Commit(t.Context(), c)
	if err != nil {
		t.Fatalf("Commit(%d puts) = %v", len(c.Put), err)
	}
	return at
}

// at is the position of a revision whose identifier is not compared.
func at(r store.Revision) store.Position { return store.Position{Revision: r} }

func position(t *testing.T, s store.Store) store.Position {
	t.Helper()
	_, now, err := s.Snapshot(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	return now
}

func get(t *testing.T, s store.Store, key string) store.Entry {
	t.Helper()
	e, err := s.Get(t.Context(), key)
	if err != nil {
		t.Fatalf("Get(%s) = %v", key, err)
	}
	return e
}

func absent(t *testing.T, s store.Store, key string) {
	t.Helper()
	if e, err := s.Get(t.Context(), key); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("Get(%s) = %q, %v; want ErrNotFound", key, e.Value, err)
	}
}

func testEntries(t *testing.T, e Engine) {
	s := e.Store
	for i, key := range keys() {
		absent(t, s, key)
		value := fmt.Sprintf("value %d\n", i)
		at := put(t, s, key, value)
		if got := get(t, s, key); string(got.Value) != value || got.Key != key || got.Revision != at || got.Modified.IsZero() || !got.Expires.IsZero() {
			t.Errorf("Get(%s) = %+v, want %q of revision %d", key, got, value, at)
		}
		at = put(t, s, key, "")
		if got := get(t, s, key); len(got.Value) != 0 || got.Revision != at {
			t.Errorf("Get(%s) = %+v, want it empty, of revision %d", key, got, at)
		}
	}
	for _, key := range keys() {
		commit(t, s, store.Change{Delete: []string{key, "never/there"}})
		absent(t, s, key)
	}
}

func testReopen(t *testing.T, e Engine) {
	var c store.Change
	for _, key := range keys() {
		c.Put = append(c.Put, store.Entry{Key: key, Value: []byte("of " + key)})
	}
	at := commit(t, e.Store, c)
	s := e.Again(t)
	for _, key := range keys() {
		if got := get(t, s, key); string(got.Value) != "of "+key || got.Revision != at {
			t.Errorf("Get(%s) = %+v, want revision %d", key, got, at)
		}
	}
	if next := put(t, s, "node/a", "x"); next != at+1 {
		t.Errorf("the revision after opening again is %d, want %d", next, at+1)
	}
	commit(t, s, store.Change{Delete: keys()})
	s = e.Again(t)
	for _, key := range keys() {
		absent(t, s, key)
	}
}

func testRevisions(t *testing.T, e Engine) {
	before := position(t, e.Store).Revision
	for i := range 10 {
		if at := put(t, e.Store, keys()[i], "x"); at != before+1 {
			t.Errorf("commit %d has revision %d, want %d", i, at, before+1)
		} else {
			before = at
		}
	}
}

func testConditions(t *testing.T, e Engine) {
	s := e.Store
	a := put(t, s, "user/a", "1")
	b := put(t, s, store.PrefixCertificate+"b", "1")
	for _, c := range []struct {
		name string
		cond []store.Condition
		want *store.Conflict
	}{
		{"older revision", []store.Condition{{Key: "user/a", Revision: a - 1}}, &store.Conflict{Key: "user/a", Have: a}},
		{"of another key", []store.Condition{{Key: "user/a", Revision: a}, {Key: store.PrefixCertificate + "b", Revision: a}}, &store.Conflict{Key: store.PrefixCertificate + "b", Have: b}},
		{"to be absent", []store.Condition{{Key: "user/a"}}, &store.Conflict{Key: "user/a", Have: a}},
		{"to be there", []store.Condition{{Key: "user/c", Revision: 1}}, &store.Conflict{Key: "user/c"}},
	} {
		_, err := s.Commit(t.Context(), store.Change{If: c.cond, Put: []store.Entry{{Key: "user/d", Value: []byte("x")}}, Append: []store.Record{{Stream: "audit", Data: []byte("x")}}})
		var got *store.Conflict
		if !errors.As(err, &got) || *got != *c.want {
			t.Errorf("%s: got %v, want %v", c.name, err, c.want)
		}
		absent(t, s, "user/d")
	}
	if records, err := s.Page(t.Context(), "audit", 0, 10); err != nil || len(records) > 0 {
		t.Errorf("refused changes are in the audit: %v, %v", records, err)
	}
	commit(t, s, store.Change{
		If:     []store.Condition{{Key: "user/a", Revision: a}, {Key: store.PrefixCertificate + "b", Revision: b}, {Key: "user/c"}},
		Put:    []store.Entry{{Key: "user/c", Value: []byte("x")}},
		Delete: []string{"user/a"},
	})
	absent(t, s, "user/a")
}

func testRace(t *testing.T, e Engine) {
	s := e.Store
	for round := range 5 {
		key := fmt.Sprintf("node/%d", round)
		var wg sync.WaitGroup
		var mu sync.Mutex
		won := 0
		for range 8 {
			wg.Go(func() {
				_, err := s.Commit(t.Context(), store.Change{If: []store.Condition{{Key: key}}, Put: []store.Entry{{Key: key, Value: []byte("x")}}})
				var conflict *store.Conflict
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					won++
				} else if !errors.As(err, &conflict) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if won != 1 {
			t.Errorf("%d writers made %s, want 1", won, key)
		}
	}
}

func testCounter(t *testing.T, e Engine) {
	s := e.Store
	const writers, each = 4, 10
	for _, key := range []string{"user/count", store.PrefixCertificate + "count"} {
		var wg sync.WaitGroup
		for range writers {
			wg.Go(func() {
				for done := 0; done < each; {
					old, err := s.Get(t.Context(), key)
					if err != nil && !errors.Is(err, store.ErrNotFound) {
						t.Error(err)
						return
					}
					_, err = s.Commit(t.Context(), store.Change{If: []store.Condition{{Key: key, Revision: old.Revision}}, Put: []store.Entry{{Key: key, Value: append(old.Value, 'x')}}})
					var conflict *store.Conflict
					if err == nil {
						done++
					} else if !errors.As(err, &conflict) {
						t.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		if got := get(t, s, key); len(got.Value) != writers*each {
			t.Errorf("%s: %d of %d are counted", key, len(got.Value), writers*each)
		}
	}
}

func testBounds(t *testing.T, e Engine) {
	s := e.Store
	var many store.Change
	for i := range store.MaxOperations {
		many.Put = append(many.Put, store.Entry{Key: fmt.Sprintf("user/%d", i), Value: []byte("x")})
	}
	commit(t, s, many)
	many.Append = []store.Record{{Stream: "audit"}}
	large := bytes.Repeat([]byte("x"), store.MaxChange-len("certificate/a"))
	commit(t, s, store.Change{Put: []store.Entry{{Key: "certificate/a", Value: large}}})
	commit(t, s, store.Change{Put: []store.Entry{{Key: "webhook/aaaaa", Value: large}}})
	for _, key := range []string{"certificate/a", "webhook/aaaaa"} {
		if got := get(t, s, key); !bytes.Equal(got.Value, large) {
			t.Errorf("%s has %d bytes, want %d", key, len(got.Value), len(large))
		}
	}
	for name, c := range map[string]store.Change{
		"operations": many,
		"bytes":      {Put: []store.Entry{{Key: "certificate/a", Value: append(large, 'x')}}},
		"key":        {Delete: []string{strings.Repeat("k", store.MaxKey+1)}},
	} {
		if _, err := s.Commit(t.Context(), c); !errors.Is(err, store.ErrTooLarge) {
			t.Errorf("%s: got %v, want ErrTooLarge", name, err)
		}
	}
}

func testMistakes(t *testing.T, e Engine) {
	s := e.Store
	for name, c := range map[string]store.Change{
		"twice": {Put: []store.Entry{{Key: "user/a"}, {Key: "user/b"}}, Delete: []string{"user/a"}},
		"key":   {Put: []store.Entry{{Key: "user/b"}, {Key: "certificate/../../etc"}}},
	} {
		if _, err := s.Commit(t.Context(), c); err == nil {
			t.Errorf("%s: no error", name)
		}
		absent(t, s, "user/b")
	}
	if _, err := s.Get(t.Context(), "a/../b"); err == nil || errors.Is(err, store.ErrNotFound) {
		t.Errorf("Get of an invalid key: %v", err)
	}
}

func testList(t *testing.T, e Engine) {
	s := e.Store
	for _, prefix := range []string{store.PrefixCertificate, store.PrefixUser} {
		var want []string
		for i := range 25 {
			key := fmt.Sprintf("%s%02d.example.com", prefix, i)
			put(t, s, key, strings.Repeat("x", i))
			want = append(want, key)
		}
		put(t, s, strings.TrimSuffix(prefix, "/")+"0", "after all others")
		var got []string
		for after := ""; ; {
			list, err := s.List(t.Context(), prefix, after, 10)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range list {
				if m.Size != len(got) || m.Revision == 0 || m.Modified.IsZero() {
					t.Errorf("List has %+v", m)
				}
				got = append(got, m.Key)
			}
			if len(list) < 10 {
				break
			}
			after = list[len(list)-1].Key
		}
		if strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("List(%s) in pages = %v, want %v", prefix, got, want)
		}
	}
	if list, err := s.List(t.Context(), "nothing/", "", 10); err != nil || len(list) != 0 {
		t.Errorf("List of nothing = %v, %v", list, err)
	}
	if list, err := s.List(t.Context(), "", "user/05.example.com", 1); err != nil || len(list) != 1 || list[0].Key != "user/06.example.com" {
		t.Errorf("List of all = %v, %v", list, err)
	}
}

func testSnapshot(t *testing.T, e Engine) {
	s := e.Store
	commit(t, s, store.Change{Put: []store.Entry{{Key: "node/a", Value: []byte("0")}, {Key: "certificate/b", Value: []byte("0")}, {Key: "node/c", Value: []byte("0")}}})
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 1; ctx.Err() == nil; i++ {
			value := fmt.Appendf(nil, "%d", i)
			_, err := s.Commit(t.Context(), store.Change{Put: []store.Entry{{Key: "node/a", Value: value}, {Key: "certificate/b", Value: value}, {Key: "node/c", Value: value}}})
			if err != nil {
				t.Error(err)
				return
			}
		}
	})
	for range 50 {
		all, at, err := s.Snapshot(t.Context(), "")
		if err != nil {
			t.Error(err)
			break
		}
		for _, e := range all {
			if !bytes.Equal(e.Value, all[0].Value) || e.Revision > at.Revision {
				t.Errorf("a snapshot at %v has %s=%s of %d beside %s=%s", at, e.Key, e.Value, e.Revision, all[0].Key, all[0].Value)
			}
		}
	}
	stop()
	wg.Wait()
	all, _, err := s.Snapshot(t.Context(), "node/")
	if err != nil || len(all) != 2 || all[0].Key != "node/a" || all[1].Key != "node/c" {
		t.Errorf("Snapshot(node/) = %v, %v", all, err)
	}
}

func testExpiry(t *testing.T, e Engine) {
	s := e.Store
	start := put(t, s, "node/clock", "x")
	for _, key := range []string{"acme/challenge/a", "certificate/a", "session/a"} {
		commit(t, s, store.Change{Put: []store.Entry{{Key: key, Value: []byte("x"), TTL: time.Minute, Expires: time.Unix(1, 0)}}})
		if got := get(t, s, key); !got.Expires.Equal(got.Modified.Add(time.Minute)) || got.TTL != 0 {
			t.Errorf("%s expires %v, want a minute after %v", key, got.Expires, got.Modified)
		}
	}
	commit(t, s, store.Change{Put: []store.Entry{{Key: "session/b", Value: []byte("x"), TTL: time.Minute}}})
	commit(t, s, store.Change{Put: []store.Entry{{Key: "session/b", Value: []byte("x"), TTL: time.Hour}}})
	e.Advance(2 * time.Minute)
	for _, key := range []string{"acme/challenge/a", "certificate/a", "session/a"} {
		absent(t, s, key)
	}
	get(t, s, "session/b")
	if list, err := s.List(t.Context(), "", "", 100); err != nil || len(list) != 2 {
		t.Errorf("List = %v, %v; want what has not expired", list, err)
	}
	commit(t, s, store.Change{If: []store.Condition{{Key: "session/a"}}, Put: []store.Entry{{Key: "session/a", Value: []byte("y")}}})
	get(t, s, "session/a")
	deleted := map[string]bool{}
	for b, err := range s.Watch(t.Context(), "acme/", at(start)) {
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range b.Delete {
			deleted[key] = true
		}
		if len(b.Delete) > 0 {
			break
		}
	}
	if !deleted["acme/challenge/a"] {
		t.Error("watchers do not hear that an entry has expired")
	}
	e.Advance(time.Hour)
	s = e.Again(t)
	absent(t, s, "session/b")
}

func testSessions(t *testing.T, e Engine) {
	s := e.Store
	var c store.Change
	name := func(i int) string { return fmt.Sprintf("session/%08d", i) }
	for i := range store.MaxSessions {
		c.Put = append(c.Put, store.Entry{Key: name(i), Value: []byte("x")})
		if len(c.Put) == store.MaxOperations || i == store.MaxSessions-1 {
			commit(t, s, c)
			c.Put = nil
			e.Advance(time.Second)
		}
	}
	put(t, s, name(0), "used again")
	e.Advance(time.Second)
	put(t, s, name(store.MaxSessions), "one more")
	count := 0
	for after := ""; ; {
		list, err := s.List(t.Context(), "session/", after, store.MaxPage)
		if err != nil {
			t.Fatal(err)
		}
		if count += len(list); len(list) < store.MaxPage {
			break
		}
		after = list[len(list)-1].Key
	}
	if count != store.MaxSessions {
		t.Errorf("%d sessions are kept, want %d", count, store.MaxSessions)
	}
	get(t, s, name(0))
	get(t, s, name(store.MaxSessions))
}

func testAliasing(t *testing.T, e Engine) {
	s := e.Store
	for _, key := range []string{"user/a", "node/a", "certificate/a"} {
		value := []byte("mine")
		before := commit(t, s, store.Change{Put: []store.Entry{{Key: key, Value: value}}}) - 1
		copy(value, "hurt")
		got := get(t, s, key)
		copy(got.Value, "hurt")
		for b, err := range s.Watch(t.Context(), key, at(before)) {
			if err != nil {
				t.Fatal(err)
			}
			if string(b.Put[0].Value) != "mine" {
				t.Errorf("a watcher of %s sees %q", key, b.Put[0].Value)
			}
			copy(b.Put[0].Value, "hurt")
			break
		}
		if again := get(t, s, key); string(again.Value) != "mine" {
			t.Errorf("%s is %q, want what was put", key, again.Value)
		}
	}
}

func testClosed(t *testing.T, e Engine) {
	s := e.Store
	put(t, s, "user/a", "x")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := s.Get(t.Context(), "user/a")
	_, err2 := s.Commit(t.Context(), store.Change{Delete: []string{"user/a"}})
	_, err3 := s.Append(t.Context(), "audit", [][]byte{nil})
	_, err4 := s.Acquire(t.Context(), "a", time.Minute)
	for i, err := range []error{err, err2, err3, err4} {
		if !errors.Is(err, store.ErrClosed) {
			t.Errorf("call %d after Close: got %v, want ErrClosed", i, err)
		}
	}
	if err := s.Close(); err != nil {
		t.Errorf("the second Close = %v", err)
	}
}

func testContext(t *testing.T, e Engine) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	_, err := e.Store.Get(ctx, "user/a")
	_, err2 := e.Store.Commit(ctx, store.Change{Put: []store.Entry{{Key: "user/a"}}})
	for i, err := range []error{err, err2} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("call %d with an ended context: got %v", i, err)
		}
	}
	absent(t, e.Store, "user/a")
}
